/* page_rows.c - see page_rows.h */
#include "report/page/page_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/sizes.h"
#include "report/stats/stack_times.h"

#define LEAST_PART                                                                     \
	2000 /* a stack without outstanding blocks is left out if all of it was always \
		less than such a part of the most */

static int add_growth(struct page_rows *rows)
{
	struct growth_rows grown = {0};
	int err = 0;

	if (rows->export->growth)
		err = growth_rows_init(&grown, rows->export, rows->export->growth);
	for (size_t at = 0; at < grown.nr && !err; at++)
		if (grown.all[at].i < rows->nr)
			rows->all[grown.all[at].i].growth = grown.all[at];
	growth_rows_release(&grown);
	return err;
}

int page_rows_init(struct page_rows *rows, const struct report_data *export)
{
	int err;

	*rows = (struct page_rows){.export = export, .nr = export->view->nr};
	rows->all = calloc(rows->nr + 1, sizeof(*rows->all));
	if (!rows->all)
		return -ENOMEM;
	for (size_t i = 0; i < rows->nr; i++)
		rows->all[i].i = i;
	err = add_growth(rows);
	return err ? err : stack_notes_init(&rows->notes, export->leaks);
}

/* Is the stack worth its place in the page?  Of what was freed by the end, most was never much. */
static bool has_weight(const struct page_rows *rows, size_t i)
{
	const struct view *view = rows->export->view;
	uint64_t least = rows->export->leaks->figures->peak.bytes / LEAST_PART;
	struct stack_track track;

	if (view_stack(view, i)->blocks)
		return true;
	if (!rows->export->times)
		return false;
	track = stack_times_of(rows->export->times, view->chosen[i]);
	for (size_t at = 0; at < track.nr; at++)
		if (track.all[at].amount.bytes > least)
			return true;
	return false;
}

/* The path of stack @i of the view. */
static int path_of_row(const struct page_rows *rows, struct page_tree *tree, size_t i,
		       struct page_path *path)
{
	const struct report_data *export = rows->export;
	const char *process = report_data_process(export, i);
	uint32_t root = TREE_NONE;
	size_t nr;
	const uint32_t *steps = places_path(export->places, i, &nr);
	int err = process ? labels_intern(export->places->labels, LABELS_NO_MODULE, process, "",
					  &root)
			  : 0;

	return err ? err
		   : page_tree_path(tree, path, export->places, steps, nr, export->places->numbers,
				    root);
}

int page_rows_add(struct page_rows *rows, struct page_tree *tree)
{
	struct page_path path;
	int err = 0;

	for (size_t i = 0; i < rows->nr && !err && !page_tree_is_full(tree); i++) {
		if (!has_weight(rows, i))
			continue;
		rows->all[i].inside = true;
		err = path_of_row(rows, tree, i, &path);
		if (!err)
			err = page_tree_add(tree, &path);
	}
	if (!err)
		err = page_tree_name(tree);
	for (size_t i = 0; i < rows->nr && !err; i++) {
		if (!rows->all[i].inside)
			continue;
		err = path_of_row(rows, tree, i, &path);
		if (!err)
			err = page_tree_name_path(tree, &path);
	}
	return err;
}

static void pack_growth(struct pack *pack, const struct page_rows *rows,
			const struct growth_row *growth)
{
	pack_number(pack, rows->export->growth ? growth->shape + 1 : 0);
	if (!rows->export->growth)
		return;
	pack_signed(pack, size_rate_whole(growth->per_minute));
	pack_signed(pack, size_rate_whole(growth->low));
	pack_signed(pack, size_rate_whole(growth->high));
	pack_number(pack, growth->growth.has_lifetime ? growth->growth.lifetime_ns / 1000 : 0);
	pack_number(pack, growth->group);
}

/* Which threads have what is outstanding of the stack; of one it is all. */
static int pack_takers(struct pack *pack, struct page_rows *rows, size_t i)
{
	size_t nr;
	const struct taker *takers =
		stack_notes_takers(&rows->notes, rows->export->view->chosen[i], &nr);

	pack_number(pack, nr);
	for (size_t at = 0; at < nr; at++) {
		struct page_thread thread = {takers[at].tgid, takers[at].tid};
		uint32_t number;

		if (intern_pair(&rows->threads.table, &thread, sizeof(thread), &number) < 0)
			return -ENOMEM;
		pack_number(pack, number);
		if (nr == 1)
			break;
		pack_number(pack, takers[at].amount.bytes);
		pack_number(pack, takers[at].amount.blocks);
	}
	return 0;
}

static int pack_row(struct pack *pack, struct page_rows *rows, const struct page_row *row)
{
	const struct stack *stack = view_stack(rows->export->view, row->i);
	uint64_t first = report_data_since_start(rows->export, stack->first_ns);
	uint64_t last = report_data_since_start(rows->export, stack->last_ns);

	pack_number(pack, stack->bytes);
	pack_number(pack, stack->blocks);
	pack_number(pack, stack->allocated.bytes);
	pack_number(pack, stack->allocated.blocks);
	pack_number(pack, first / 1000);
	pack_number(pack, last > first ? (last - first) / 1000 : 0);
	pack_growth(pack, rows, &row->growth);
	return pack_takers(pack, rows, row->i);
}

static void put_threads(const struct page_rows *rows, struct json *json)
{
	const struct thread_names *names = rows->export->leaks->chosen.threads;

	json_open(json, "threads", '[');
	for (size_t i = 0; i < rows->threads.nr; i++) {
		const struct page_thread *thread = &rows->threads.all[i];

		json_number(json, NULL, thread->tgid);
		json_number(json, NULL, thread->tid);
		json_text(json, NULL, thread_names_get(names, thread->tgid, thread->tid));
	}
	json_close(json, ']');
}

/* What is outstanding of stacks that the page has no room for. */
static void put_rest(const struct page_rows *rows, struct json *json)
{
	struct live_amount sum = {0};
	uint64_t nr = 0;

	for (size_t i = 0; i < rows->nr; i++) {
		if (rows->all[i].inside)
			continue;
		live_amount_add(&sum, stack_outstanding(view_stack(rows->export->view, i)));
		nr += view_stack(rows->export->view, i)->blocks > 0;
	}
	json_open(json, "rest", '{');
	json_number(json, "stacks", nr);
	json_number(json, "blocks", sum.blocks);
	json_number(json, "bytes", sum.bytes);
	json_close(json, '}');
}

int page_rows_put(struct page_rows *rows, struct page_tree *tree, struct json *json)
{
	struct page_path path;
	struct pack pack;
	size_t nr = 0;
	int err = pack_open(&pack);

	for (size_t i = 0; i < rows->nr && !err; i++) {
		if (!rows->all[i].inside)
			continue;
		err = path_of_row(rows, tree, i, &path);
		if (err)
			break;
		page_tree_pack(tree, &path, &pack);
		err = pack_row(&pack, rows, &rows->all[i]);
		nr++;
	}
	if (err) {
		pack_close(&pack, NULL, NULL);
		return err;
	}
	json_number(json, "row_count", nr);
	put_threads(rows, json);
	put_rest(rows, json);
	return pack_close(&pack, json, "rows");
}

void page_rows_release(struct page_rows *rows)
{
	stack_notes_release(&rows->notes);
	intern_release(&rows->threads.table);
	free(rows->all);
	*rows = (struct page_rows){0};
}
