/* print_threads.c - see print_threads.h */
#include "report/output/print_threads.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/table_rows.h"
#include "report/context/thread_rows.h"
#include "report/machine/print_json.h"
#include "report/terminal/color.h"

#define SCHEMA_VERSION 1
#define PAIRS_TEXT     10   /* pairs of threads shown to people, */
#define PAIRS_JSON     1000 /* and to programs */

/* A table that is printed. */
struct threads_table {
	const struct report_data *export;
	const struct table_opts *opts;
	struct thread_rows rows;
	size_t shown; /* rows */
	bool by_name, processes;
};

/* As the table calls @row: its number and name, or the name alone. */
static void put_name(FILE *out, const struct threads_table *t, const struct thread_row *row)
{
	if (t->by_name)
		fputs(*row->name ? row->name : "[unknown]", out);
	else
		fprintf(out, "%" PRIu32 "%s%s", row->tid, *row->name ? " " : "", row->name);
}

static void put_process(FILE *out, const struct threads_table *t, const struct thread_row *row)
{
	char *label = processes_label(t->export->leaks->processes, row->tgid);

	fputs(" of ", out);
	text_print(out, label ? label : "");
	free(label);
}

static void put_label(FILE *out, const struct threads_table *t, const struct thread_row *row)
{
	put_name(out, t, row);
	if (t->by_name && row->threads > 1)
		fprintf(out, " (%" PRIu32 " threads)", row->threads);
	else if (t->processes && !t->by_name)
		put_process(out, t, row);
	if (row->ended && !t->by_name)
		fputs(", ended", out);
}

static void put_row(FILE *out, const struct threads_table *t, const struct thread_row *row,
		    bool heavy)
{
	char text[6][SIZE_TEXT_MAX];
	bool color = t->export->view->opts.color;

	fprintf(out, "%s%12s%s%10s%15s%12s%12s%12s  %s",
		color_of(color, heavy ? COLOR_HEAVY : COLOR_NONE),
		size_cell(text[0], row->outstanding.bytes), color_of(color, COLOR_END),
		text_number(text[1], row->outstanding.blocks),
		size_cell(text[2], row->allocated.bytes),
		text_number(text[3], row->allocated.blocks),
		text_number(text[4], row->freed_own.blocks),
		text_number(text[5], row->freed_others.blocks), color_of(color, COLOR_NAME));
	put_label(out, t, row);
	fprintf(out, "%s\n", color_of(color, COLOR_END));
}

/* What of the rows was only counted. */
static void put_counted(FILE *out, const struct threads_table *t)
{
	struct live_amount all = {0}, left = {0};
	char text[4][SIZE_TEXT_MAX];

	for (size_t i = 0; i < t->rows.nr_shown; i++) {
		live_amount_add(&all, t->rows.order[i]->counted);
		live_amount_add(&left, t->rows.order[i]->counted_left);
	}
	if (!all.blocks)
		return;
	fprintf(out, "\nonly counted, without stacks: %s %s, %s; outstanding of these: %s %s, %s\n",
		text_number(text[0], all.blocks), text_blocks(all.blocks),
		size_text(text[1], all.bytes), text_number(text[2], left.blocks),
		text_blocks(left.blocks), size_text(text[3], left.bytes));
}

/* Which threads freed most of what others had allocated. */
static void put_pairs(FILE *out, const struct threads_table *t)
{
	const union thread_pairs *pairs = &t->rows.pairs;
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];

	if (!pairs->nr)
		return;
	fprintf(out, "\nallocated by one thread, freed by another%s:\n",
		pairs->nr > PAIRS_TEXT ? ", the largest sums" : "");
	fprintf(out, "%12s%10s  from -> to\n", size_title(), "blocks");
	for (size_t i = 0; i < pairs->nr && i < PAIRS_TEXT; i++) {
		const struct thread_pair *pair = &pairs->all[i];

		fprintf(out, "%12s%10s  ", size_cell(bytes, pair->freed.bytes),
			text_number(blocks, pair->freed.blocks));
		put_label(out, t, &t->rows.all[pair->owner]);
		fputs(" -> ", out);
		if (pair->freer == THREAD_ACCOUNTS_NOBODY)
			fputs("[several]", out);
		else
			put_label(out, t, &t->rows.all[pair->freer]);
		fputc('\n', out);
	}
}

/* What is outstanding of the rows that are not shown. */
static struct live_amount rest_of(const struct threads_table *t)
{
	struct live_amount rest = {0};

	for (size_t i = t->shown; i < t->rows.nr_shown; i++)
		live_amount_add(&rest, t->rows.order[i]->outstanding);
	return rest;
}

static void put_threads_text(FILE *out, const struct threads_table *t)
{
	uint64_t heavy = report_data_selected(t->export).bytes / 10 + 1; /* as of a tree */

	if (!t->shown) {
		fputs("no allocations\n", out);
		return;
	}
	fprintf(out, "%22s%27s%24s\n%12s%10s%15s%12s%12s%12s  %s\n", "outstanding", "allocated",
		"blocks freed by", size_title(), "blocks", size_title(), "blocks", "itself",
		"others", t->by_name ? "threads" : "thread");
	for (size_t i = 0; i < t->shown; i++)
		put_row(out, t, t->rows.order[i], t->rows.order[i]->outstanding.bytes >= heavy);
	if (t->rows.nr_shown > t->shown)
		fputc('\n', out);
	print_left_out(out, t->rows.nr_shown - t->shown, "lighter row", "lighter rows", rest_of(t));
	put_counted(out, t);
	put_pairs(out, t);
	if (t->export->accounts->crowded)
		fputs("\nToo many threads by stack: some of what is allocated and freed is of "
		      "stacks that options leave out.\n",
		      out);
}

static void put_csv_amount(FILE *out, struct live_amount amount)
{
	fprintf(out, ",%" PRIu64 ",%" PRIu64, amount.bytes, amount.blocks);
}

/* The name as one field, which the caller frees, or NULL: no memory. */
static char *row_name(const struct threads_table *t, const struct thread_row *row)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	put_name(out, t, row);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static void put_threads_csv(FILE *out, const struct threads_table *t)
{
	fprintf(out,
		"outstanding_bytes,outstanding_blocks,%s,pid,tid,threads,allocated_bytes,"
		"allocated_blocks,freed_by_itself_bytes,freed_by_itself_blocks,"
		"freed_by_others_bytes,freed_by_others_blocks,implied_or_gone_bytes,"
		"implied_or_gone_blocks,"
		"freed_of_others_bytes,freed_of_others_blocks,counted_bytes,counted_blocks,"
		"counted_outstanding_bytes,counted_outstanding_blocks,ended\r\n",
		t->by_name ? "thread-name" : "thread");
	for (size_t i = 0; i < t->shown; i++) {
		const struct thread_row *row = t->rows.order[i];
		char *name = row_name(t, row);

		fprintf(out, "%" PRIu64 ",%" PRIu64 ",", row->outstanding.bytes,
			row->outstanding.blocks);
		csv_text(out, name ? name : "");
		free(name);
		fprintf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, row->tgid, row->tid,
			row->threads);
		put_csv_amount(out, row->allocated);
		put_csv_amount(out, row->freed_own);
		put_csv_amount(out, row->freed_others);
		put_csv_amount(out, row->lost);
		put_csv_amount(out, row->took);
		put_csv_amount(out, row->counted);
		put_csv_amount(out, row->counted_left);
		fprintf(out, ",%d\r\n", row->ended);
	}
}

static void put_json_row(struct json *json, const struct threads_table *t,
			 const struct thread_row *row)
{
	char *name = row_name(t, row);

	json_open(json, NULL, '{');
	json_text(json, t->by_name ? "thread-name" : "thread", name ? name : "");
	free(name);
	if (t->by_name) {
		json_number(json, "threads", row->threads);
	} else {
		json_number(json, "pid", row->tgid);
		json_number(json, "tid", row->tid);
		json_text(json, "thread_name", row->name);
		json_bool(json, "ended", row->ended);
	}
	json_amount(json, "outstanding", row->outstanding);
	json_amount(json, "allocated", row->allocated);
	json_amount(json, "freed_by_itself", row->freed_own);
	json_amount(json, "freed_by_others", row->freed_others);
	json_amount(json, "implied_or_gone", row->lost);
	json_amount(json, "freed_of_others", row->took);
	json_amount(json, "counted", row->counted);
	json_amount(json, "counted_outstanding", row->counted_left);
	json_close(json, '}');
}

static void put_json_thread(struct json *json, const char *key, const struct threads_table *t,
			    uint32_t number)
{
	char *name;

	if (number == THREAD_ACCOUNTS_NOBODY) {
		json_text(json, key, "[several]");
		return;
	}
	name = row_name(t, &t->rows.all[number]);
	json_text(json, key, name ? name : "");
	free(name);
}

static void put_json_pairs(struct json *json, const struct threads_table *t)
{
	const union thread_pairs *pairs = &t->rows.pairs;
	struct live_amount rest = {0};

	json_open(json, "freed_by", '[');
	for (size_t i = 0; i < pairs->nr; i++) {
		if (i >= PAIRS_JSON) {
			live_amount_add(&rest, pairs->all[i].freed);
			continue;
		}
		json_open(json, NULL, '{');
		put_json_thread(json, "allocated_by", t, pairs->all[i].owner);
		put_json_thread(json, "freed_by", t, pairs->all[i].freer);
		json_amount(json, "freed", pairs->all[i].freed);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_amount(json, "freed_by_left_out", rest);
}

static int put_threads_json(FILE *out, const struct threads_table *t)
{
	struct json json = {.out = out};
	int err = json_begin(&json, t->export, "mleak-groups", SCHEMA_VERSION);

	json_text(&json, "by", t->by_name ? "thread-name" : "thread");
	json_open(&json, "groups", '[');
	for (size_t i = 0; i < t->shown; i++)
		put_json_row(&json, t, t->rows.order[i]);
	json_close(&json, ']');
	put_json_pairs(&json, t);
	json_left_out(&json, "groups", t->rows.nr_shown - t->shown, rest_of(t));
	json_end(&json, t->export);
	return err;
}

int print_threads(FILE *out, const struct report_data *export, bool by_name,
		  const struct table_opts *opts)
{
	struct threads_table t = {.export = export,
				  .opts = opts,
				  .by_name = by_name,
				  .processes = live_nr_processes(export->leaks->live) > 1};
	size_t top;
	int err = thread_rows_init(&t.rows, export, by_name);

	if (err)
		return err;
	top = opts->top ? opts->top : opts->format == TABLE_TEXT ? export->view->opts.rows : 0;
	t.shown = top && top < t.rows.nr_shown ? top : t.rows.nr_shown;
	if (opts->format == TABLE_JSON)
		err = put_threads_json(out, &t);
	else if (opts->format == TABLE_CSV)
		put_threads_csv(out, &t);
	else
		put_threads_text(out, &t);
	thread_rows_release(&t.rows);
	return err;
}
