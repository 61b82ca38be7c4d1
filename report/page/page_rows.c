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

/* Begin to fold what repeats, as the text does. */
static int start_folding(struct page_rows *rows)
{
	rows->folded = malloc(sizeof(*rows->folded));
	if (!rows->folded)
		return -ENOMEM;
	return recursion_init(&rows->recursion, rows->export->places->labels);
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
	if (!err)
		err = stack_notes_init(&rows->notes, export->leaks);
	if (!err && export->accounts)
		err = thread_rows_init(&rows->accounts, export, false);
	return err || export->view->opts.full_recursion ? err : start_folding(rows);
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

/* Fold what repeats in @path from frame @first on. */
static int fold_path(struct page_rows *rows, struct page_path *path, size_t first)
{
	const struct recursion_path *folded = rows->folded;
	size_t from = first;
	int err = recursion_fold(&rows->recursion, path->labels + first, path->nr - first,
				 rows->folded);

	if (err)
		return err;
	for (size_t i = 0; i < folded->nr; i++) {
		/* several functions that call each other in turn have no line together */
		bool single = folded->repeats[i].nr > 0;
		size_t next = i + 1 < folded->nr
				      ? (size_t)(folded->repeats[i + 1].labels - path->labels)
				      : path->nr;

		path->lines[first + i] = single ? path->lines[from] : 0;
		path->times[first + i] = folded->repeats[i].times;
		from = next;
	}
	for (size_t i = 0; i < folded->nr; i++)
		path->labels[first + i] = folded->labels[i];
	path->nr = first + folded->nr;
	return 0;
}

/* The path of stack @i of the view. */
static int path_of_row(struct page_rows *rows, struct page_tree *tree, size_t i,
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

	if (!err)
		err = page_tree_path(tree, path, export->places, steps, nr, export->places->numbers,
				     root);
	return err || !rows->folded ? err : fold_path(rows, path, root != TREE_NONE);
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

static void pack_amount(struct pack *pack, struct live_amount amount)
{
	pack_number(pack, amount.bytes);
	pack_number(pack, amount.blocks);
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
		pack_amount(pack, takers[at].amount);
	}
	return 0;
}

static int pack_row(struct pack *pack, struct page_rows *rows, const struct page_row *row)
{
	const struct stack *stack = view_stack(rows->export->view, row->i);
	uint64_t first = report_data_since_start(rows->export, stack->first_ns);
	uint64_t last = report_data_since_start(rows->export, stack->last_ns);

	int err;

	pack_amount(pack, stack_outstanding(stack));
	pack_amount(pack, stack->allocated);
	pack_number(pack, first / 1000);
	pack_number(pack, last > first ? (last - first) / 1000 : 0);
	pack_growth(pack, rows, &row->growth);
	err = pack_takers(pack, rows, row->i);
	if (rows->export->by_verdict)
		pack_amount(pack, stack->lost);
	return err;
}

/* Of each thread that allocated: its number, and what it allocated, what of it was freed by itself
 * and by others, and what of it was only counted and is outstanding. */
static int put_accounts(struct page_rows *rows, struct json *json)
{
	struct pack pack;
	int err = pack_open(&pack);

	for (size_t i = 0; i < rows->accounts.nr_shown && !err; i++) {
		const struct thread_row *row = rows->accounts.order[i];
		struct page_thread thread = {row->tgid, row->tid};
		uint32_t number;

		if (intern_pair(&rows->threads.table, &thread, sizeof(thread), &number) < 0) {
			pack_close(&pack, NULL, NULL);
			return -ENOMEM;
		}
		pack_number(&pack, number);
		pack_amount(&pack, row->allocated);
		pack_amount(&pack, row->freed_own);
		pack_amount(&pack, row->freed_others);
		pack_amount(&pack, row->counted);
		pack_amount(&pack, row->counted_left);
	}
	return err ? err : pack_close(&pack, json, "accounts");
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
	err = put_accounts(rows, json);
	if (err) {
		pack_close(&pack, NULL, NULL);
		return err;
	}
	put_threads(rows, json);
	put_rest(rows, json);
	return pack_close(&pack, json, "rows");
}

void page_rows_release(struct page_rows *rows)
{
	stack_notes_release(&rows->notes);
	thread_rows_release(&rows->accounts);
	recursion_release(&rows->recursion);
	free(rows->folded);
	intern_release(&rows->threads.table);
	free(rows->all);
	*rows = (struct page_rows){0};
}
