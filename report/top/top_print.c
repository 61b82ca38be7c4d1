/* top_print.c - tables for pipes and files, one after the other */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/base/array.h"
#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/sampling_text.h"
#include "report/terminal/color.h"
#include "report/top/groups.h"
#include "report/top/top_view.h"
#include "report/trace/event_line.h"

#define MOST_COLUMNS 160 /* of functions in a line, where stdout is no terminal */
#define BEFORE	     72	 /* columns of a line that stand before them */

/* The time of day at @ns, CLOCK_MONOTONIC of the recorded machine. */
static void print_clock(FILE *out, const struct mlk_meta *meta, uint64_t ns)
{
	time_t seconds = (time_t)((meta->realtime_ns + (ns - meta->start_ns)) / 1000000000);
	char text[32] = "--:--:--";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fputs(text, out);
}

static void print_damage(FILE *out, const struct mlk_condition *condition)
{
	char number[TEXT_NUMBER_MAX];

	if (condition->chunks_lost)
		fprintf(out, ", %s %s of the trace damaged",
			text_number(number, condition->chunks_lost),
			condition->chunks_lost == 1 ? "chunk" : "chunks");
}

/* Of when and of what, the sums, and what was left out on purpose. */
static int print_head(FILE *out, const struct top_view *view)
{
	const struct mlk_meta *meta = mlk_reader_meta(view->trace);
	const struct live_totals *totals = &view->totals;
	uint64_t now_ns = view->table.now_ns;
	char a[SIZE_TEXT_MAX], b[TEXT_NUMBER_MAX], c[TEXT_NUMBER_MAX];
	char *title = top_view_title(view), *notes;

	if (!title)
		return -ENOMEM;
	fputc('[', out);
	print_clock(out, meta, now_ns);
	fprintf(out, "] %.1f s of ",
		now_ns > meta->start_ns ? (double)(now_ns - meta->start_ns) / 1e9 : 0.0);
	text_print(out, title);
	free(title);
	fprintf(out, ": %s in %s %s outstanding from %s %s\n",
		size_text(a, totals->outstanding.bytes), text_number(b, totals->outstanding.blocks),
		text_blocks(totals->outstanding.blocks), text_number(c, view->table.nr_stacks),
		view->table.nr_stacks == 1 ? "stack" : "stacks");
	fprintf(out, "  allocated %s %s, freed %s", text_number(a, totals->allocated.blocks),
		text_blocks(totals->allocated.blocks), text_number(b, totals->freed.blocks));
	if (totals->unknown_frees)
		fprintf(out, ", freed %s older %s", text_number(a, totals->unknown_frees),
			totals->unknown_frees == 1 ? "one" : "ones");
	fprintf(out, "; %s event%s lost", text_number(a, view->lost), view->lost == 1 ? "" : "s");
	print_damage(out, &view->leaks->condition);
	if (view->resident_known)
		fprintf(out, "; RSS %s", size_text(a, view->resident));
	fputc('\n', out);
	notes = sampling_notes(meta, &view->leaks->condition.losses);
	if (notes && *notes)
		fprintf(out, "  %s\n", notes);
	free(notes);
	return notes ? 0 : -ENOMEM;
}

/* The outstanding blocks of the stacks that are shown. */
struct block_list {
	bool *wanted; /* by number of stack */
	size_t nr_wanted;
	struct live_block *all;
	size_t nr, room;
	int err;
};

static void list_block(void *arg, const struct live_block *block)
{
	struct block_list *list = arg;

	if (!list->err && block->stack < list->nr_wanted && list->wanted[block->stack])
		list->err = array_append(&list->all, &list->nr, &list->room, block, sizeof(*block));
}

static int compare_blocks(const void *a, const void *b)
{
	const struct live_block *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int list_blocks(struct block_list *list, const struct top_view *view, size_t nr)
{
	list->nr_wanted = view->leaks->stacks->nr;
	list->wanted = calloc(list->nr_wanted + 1, sizeof(*list->wanted));
	if (!list->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		list->wanted[view->table.rows[i].stack] = true;
	live_each(view->leaks->live, list_block, list);
	if (list->nr)
		qsort(list->all, list->nr, sizeof(*list->all), compare_blocks);
	return list->err;
}

static void print_blocks(FILE *out, const struct block_list *list, uint32_t stack)
{
	size_t first = array_first_from(list->all, list->nr, sizeof(*list->all),
					offsetof(struct live_block, stack), stack);
	char size[TEXT_NUMBER_MAX];

	for (size_t i = first; i < list->nr && list->all[i].stack == stack; i++)
		fprintf(out, "\taddr = 0x%" PRIx64 " size = %s\n", list->all[i].addr,
			text_number(size, list->all[i].size));
}

/* @text, and spaces before it so that they are @columns together. */
static void print_right(FILE *out, int columns, const char *text)
{
	fprintf(out, "%*s", columns, text);
}

/* @from: the function that tells it from the others; see stack_names_apart(). */
static int print_line(FILE *out, const struct top_view *view, const struct top_row *row,
		      size_t from)
{
	size_t columns = color_columns();
	char number[TEXT_NUMBER_MAX], size[SIZE_TEXT_MAX], age[TOP_TIME_MAX], freed[16];
	char *line;

	columns = !columns ? MOST_COLUMNS : columns > BEFORE + 20 ? columns - BEFORE : 20;
	line = stack_names_line(view->names, row->id, columns, from);
	snprintf(freed, sizeof(freed), "%.1f %%", 100 * row->freed);
	print_right(out, 16, size_cell(size, row->now.bytes));
	print_right(out, 13, text_number(number, row->now.blocks));
	print_right(out, 15, size_rate_cell(size, row->rate));
	print_right(out, 9, freed);
	print_right(out, 11, top_time(age, row->age_ns));
	fputs("  ", out);
	if (row->process) {
		text_print(out, row->process);
		fputs(": ", out);
	}
	fprintf(out, "%s\n", line ? line : "");
	free(line);
	return line ? 0 : -ENOMEM;
}

/* All of a stack, in the words of bcc's memleak. */
static void print_stack(FILE *out, const struct top_view *view, const struct top_row *row)
{
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX], rate[SIZE_TEXT_MAX], age[TOP_TIME_MAX];

	fprintf(out, "\t%s in %s %s from stack", size_text(bytes, row->now.bytes),
		text_number(blocks, row->now.blocks),
		row->now.blocks == 1 ? "allocation" : "allocations");
	if (row->process) {
		fputs(" of ", out);
		text_print(out, row->process);
	}
	if (view->opts->form == TOP_FLAT)
		fprintf(out, ", %s/s, %.1f %% freed, %s old", size_rate_text(rate, row->rate),
			100 * row->freed, top_time(age, row->age_ns));
	fputc('\n', out);
	stack_names_print(view->names, out, row->id, "\t\t");
}

static int print_row(FILE *out, const struct top_view *view, size_t i, size_t from,
		     const struct block_list *blocks)
{
	const struct top_row *row = &view->table.rows[i];
	int err = 0;

	if (view->opts->form == TOP_TABLE)
		err = print_line(out, view, row, from);
	else
		print_stack(out, view, row);
	if (view->opts->blocks)
		print_blocks(out, blocks, row->stack);
	return err;
}

/* In place of stacks: what processes, threads, caches or control groups hold. */
static int print_groups(FILE *out, const struct top_view *view)
{
	struct groups groups = {0};
	struct holdings now = {0};
	char size[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX];
	int err = top_view_holdings(view, &now);

	if (!err)
		err = groups_fill(&groups, view, view->opts->by, &now, NULL);
	if (!err && groups.nr)
		fprintf(out, "%16s%13s  %s\n", size_title(), "blocks", groups_title(&groups));
	for (size_t i = 0; !err && i < groups.nr && i < view->opts->rows; i++) {
		const struct group *group = &groups.all[i];

		print_right(out, 16, size_cell(size, group->now.bytes));
		print_right(out, 13, text_number(number, group->now.blocks));
		fputs("  ", out);
		text_print(out, group->name);
		fputc('\n', out);
	}
	groups_release(&groups);
	holdings_release(&now);
	return err;
}

static int print_rows(FILE *out, const struct top_view *view)
{
	size_t nr = view->table.nr < view->opts->rows ? view->table.nr : view->opts->rows;
	struct block_list blocks = {0};
	size_t *from = NULL;
	int err = top_view_apart(view, NULL, nr, &from);

	if (!err && view->opts->blocks)
		err = list_blocks(&blocks, view, nr);
	if (view->opts->form == TOP_TABLE && nr)
		fprintf(out, "%16s%13s%15s%9s%11s  %s\n", size_title(), "blocks",
			size_rate_title("bytes/s", "per s"), "freed", "age", "stack");
	for (size_t i = 0; !err && i < nr; i++)
		err = print_row(out, view, i, from[i], &blocks);
	free(from);
	free(blocks.wanted);
	free(blocks.all);
	return err;
}

static void print_resident(FILE *out, const struct top_view *view)
{
	const char *text = view->where.text;

	fputs(text ? text
	      : view->where.failed
		      ? "  where the memory is is not known: there is too little memory for that\n"
		      : "  where the memory is was not read yet\n",
	      out);
}

int top_print(FILE *out, const struct top_view *view)
{
	int err = print_head(out, view);

	if (!err && view->opts->resident)
		print_resident(out, view);
	else if (!err)
		err = view->opts->grouped ? print_groups(out, view) : print_rows(out, view);
	fputc('\n', out);
	fflush(out);
	return err;
}

/* Have the names of stack @id, which --trace shows at once and mostly not for the first time. */
static int name_stack(struct top_view *view, uint32_t id)
{
	int err =
		array_cover(&view->named, &view->named_room, (size_t)id + 1, sizeof(*view->named));

	if (err || view->named[id])
		return err;
	view->named[id] = true;
	err = stack_names_want(view->names, id);
	return err ? err : stack_names_resolve(view->names);
}

int top_print_call(FILE *out, struct top_view *view, const struct mlk_event *event, uint32_t id)
{
	char *line;
	int err;

	print_event(out, event, view->state.start_ns, view->leaks->threads);
	if (event->kind != MLK_ALLOC) {
		fputc('\n', out);
		return 0;
	}
	err = name_stack(view, id);
	line = err ? NULL : stack_names_line(view->names, id, MOST_COLUMNS, 0);
	fprintf(out, "  %s\n", line ? line : "");
	free(line);
	return line ? 0 : -ENOMEM;
}
