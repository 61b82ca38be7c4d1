/* print_diff.c - see print_diff.h */
#include "report/diff/print_diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/report_data.h"
#include "report/context/table_rows.h"
#include "report/machine/print_json.h"
#include "report/terminal/color.h"

#define MIB_PER_HOUR (60 / 1048576.0) /* of a byte a minute */

/* A number with its sign, and commas. */
static const char *signed_text(char buf[TEXT_NUMBER_MAX + 1], uint64_t before, uint64_t after)
{
	buf[0] = after < before ? '-' : '+';
	text_number(buf + 1, diff_distance(after, before));
	return buf;
}

static void put_sums(FILE *out, const char *what, const struct diff *diff, enum diff_side side)
{
	const struct report_data *export = diff->side[side];
	struct live_amount amount = diff_sum(diff, side);
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];

	fprintf(out, "%-7s%21s%12s %-6s outstanding%12" PRIu64 " %-6s lost", what,
		size_text(bytes, amount.bytes), text_number(blocks, amount.blocks),
		text_blocks(amount.blocks), replay_lost(export->leaks),
		replay_lost(export->leaks) == 1 ? "event" : "events");
	if (export->choice->moments)
		fprintf(out, "%13.3f s of", (double)export->choice->until_ns / 1e9);
	fprintf(out, "%*.3f s recorded  ", export->choice->moments ? 9 : 13,
		(double)report_data_duration(export) / 1e9);
	text_print(out, export->path);
	fputc('\n', out);
}

static void put_diff_row(FILE *out, const struct diff *diff, const struct diff_row *row)
{
	const struct place_range all = {
		diff->side[row->side]->places, row->i, 0, SIZE_MAX, "", "    "};
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX + 1];
	char before[SIZE_TEXT_MAX], after[SIZE_TEXT_MAX];
	bool color = diff->side[row->side]->view->opts.color;
	bool is_more = row->amount[DIFF_AFTER].bytes > row->amount[DIFF_BEFORE].bytes;

	fprintf(out, "%s%-7s%15s%12s%15s%15s%s\n",
		color_of(color, is_more ? COLOR_HEAVY : COLOR_NONE), diff_verdict(diff, row),
		size_change_cell(bytes, row->amount[DIFF_BEFORE].bytes,
				 row->amount[DIFF_AFTER].bytes),
		signed_text(blocks, row->amount[DIFF_BEFORE].blocks,
			    row->amount[DIFF_AFTER].blocks),
		size_cell(before, row->amount[DIFF_BEFORE].bytes),
		size_cell(after, row->amount[DIFF_AFTER].bytes), color_of(color, COLOR_END));
	print_place_range(out, &all, &diff->side[row->side]->view->opts, print_place);
}

static void put_rate_row(FILE *out, const struct diff *diff, const struct diff_row *row)
{
	const struct place_range all = {
		diff->side[row->side]->places, row->i, 0, SIZE_MAX, "", "    "};
	double before = row->rate[DIFF_BEFORE] * MIB_PER_HOUR;
	double after = row->rate[DIFF_AFTER] * MIB_PER_HOUR;
	bool color = diff->side[row->side]->view->opts.color;

	fprintf(out, "%s%-7s%+15.1f%15.1f%15.1f%s\n",
		color_of(color, after > before ? COLOR_HEAVY : COLOR_NONE), diff_verdict(diff, row),
		after - before, before, after, color_of(color, COLOR_END));
	print_place_range(out, &all, &diff->side[row->side]->view->opts, print_place);
}

/* The stacks that grow, whether at the same rate or not. */
static void put_rates(FILE *out, const struct diff *diff, size_t top)
{
	size_t shown = 0, growing = 0;
	char number[TEXT_NUMBER_MAX];

	fprintf(out,
		"\nboth recordings attached to one process: what grew in them is compared by its "
		"rate\n\n%-7s%15s%15s%15s\n",
		"", "MiB/h", "before", "after");
	for (size_t i = 0; i < diff->nr; i++) {
		const struct diff_row *row = &diff->rows[i];

		if (row->rate[DIFF_BEFORE] <= 0 && row->rate[DIFF_AFTER] <= 0)
			continue;
		growing++;
		if (top && shown == top)
			continue;
		put_rate_row(out, diff, row);
		shown++;
	}
	fprintf(out, "\n%zu %s, %zu of them %s not shown; %zu did not\n", growing,
		growing == 1 ? "stack grew" : "stacks grew", growing - shown,
		growing - shown == 1 ? "is" : "are", diff->nr - growing);
	fprintf(out, "new or faster ones grew by %s bytes more than at the rate before\n",
		text_number(number, diff_came(diff).bytes));
}

static int put_diff_text(FILE *out, const struct diff *diff, size_t top)
{
	size_t same = 0, shown = 0, left_out = 0;
	int err;

	put_sums(out, "before", diff, DIFF_BEFORE);
	put_sums(out, "after", diff, DIFF_AFTER);
	err = print_scope(out, diff->side[DIFF_AFTER]);
	if (diff->rates) {
		put_rates(out, diff, top);
		return err;
	}
	fprintf(out, "\n%-7s%15s%12s%15s%15s\n", "", size_title(), "blocks", "before", "after");
	for (size_t i = 0; i < diff->nr; i++) {
		const struct diff_row *row = &diff->rows[i];

		if (!strcmp(diff_verdict(diff, row), "same")) {
			same++;
		} else if (top && shown == top) {
			left_out++;
		} else {
			put_diff_row(out, diff, row);
			shown++;
		}
	}
	fprintf(out, "\n%zu %s, %zu of them %s not shown; %zu %s the same\n", shown + left_out,
		shown + left_out == 1 ? "stack differs" : "stacks differ", left_out,
		left_out == 1 ? "is" : "are", same, same == 1 ? "is" : "are");
	return err;
}

/* FILE:LINE, or where that is not known the module, of each frame of stack @i: two calls in one
 * function have the same names. */
static int put_csv_places(FILE *out, const struct places *places, size_t i)
{
	size_t nr, len;
	const uint32_t *path = places_path(places, i, &nr);
	char *text = NULL;
	FILE *all = open_memstream(&text, &len);

	while (all && nr) {
		const struct place *place = &places->all[path[--nr]];

		if (place->file[0])
			fprintf(all, "%s:%" PRIu32 "%s", place->file, place->line, nr ? ";" : "");
		else
			fprintf(all, "%s%s", text_file_name(place->module), nr ? ";" : "");
	}
	if (!all || fclose(all)) {
		free(text);
		return -ENOMEM;
	}
	csv_text(out, text);
	free(text);
	return 0;
}

static int put_diff_csv(FILE *out, const struct diff *diff, size_t top)
{
	fprintf(out,
		"change,bytes_before,bytes_after,blocks_before,blocks_after,%sstack,places\r\n",
		diff->rates ? "bytes_per_minute_before,bytes_per_minute_after," : "");
	for (size_t i = 0; i < diff->nr && (!top || i < top); i++) {
		const struct diff_row *row = &diff->rows[i];

		fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
			diff_verdict(diff, row), row->amount[DIFF_BEFORE].bytes,
			row->amount[DIFF_AFTER].bytes, row->amount[DIFF_BEFORE].blocks,
			row->amount[DIFF_AFTER].blocks);
		if (diff->rates)
			fprintf(out, "%" PRId64 ",%" PRId64 ",",
				size_rate_whole(row->rate[DIFF_BEFORE]),
				size_rate_whole(row->rate[DIFF_AFTER]));
		csv_path(out, diff->side[row->side]->places, row->i);
		fputc(',', out);
		if (put_csv_places(out, diff->side[row->side]->places, row->i))
			return -ENOMEM;
		fputs("\r\n", out);
	}
	return 0;
}

static void put_side(struct json *json, const char *key, const struct diff *diff,
		     enum diff_side side)
{
	json_open(json, key, '{');
	json_text(json, "path", diff->side[side]->path);
	json_amount(json, "outstanding", diff_sum(diff, side));
	json_number(json, "lost_events", replay_lost(diff->side[side]->leaks));
	json_number(json, "duration_ns", report_data_duration(diff->side[side]));
	json_close(json, '}');
}

static void put_json_row(struct json *json, const struct diff *diff, const struct diff_row *row)
{
	size_t nr;
	const uint32_t *path = places_path(diff->side[row->side]->places, row->i, &nr);

	json_open(json, NULL, '{');
	json_text(json, "change", diff_verdict(diff, row));
	json_amount(json, "before", row->amount[DIFF_BEFORE]);
	json_amount(json, "after", row->amount[DIFF_AFTER]);
	if (diff->rates) {
		json_signed(json, "bytes_per_minute_before",
			    size_rate_whole(row->rate[DIFF_BEFORE]));
		json_signed(json, "bytes_per_minute_after", size_rate_whole(row->rate[DIFF_AFTER]));
	}
	json_open(json, "frames", '[');
	for (size_t at = 0; at < nr; at++)
		json_place(json, &diff->side[row->side]->places->all[path[at]]);
	json_close(json, ']');
	json_close(json, '}');
}

static int put_diff_json(FILE *out, const struct diff *diff, size_t top)
{
	struct json json = {.out = out};
	int err;

	json_open(&json, NULL, '{');
	json_text(&json, "schema", "mleak-diff");
	json_number(&json, "version", 1);
	json_text(&json, "mleak", MLEAK_VERSION);
	put_side(&json, "before", diff, DIFF_BEFORE);
	put_side(&json, "after", diff, DIFF_AFTER);
	err = shown_json(&json, diff->side[DIFF_AFTER]);
	json_bool(&json, "rates", diff->rates);
	json_open(&json, "stacks", '[');
	for (size_t i = 0; i < diff->nr && (!top || i < top); i++)
		put_json_row(&json, diff, &diff->rows[i]);
	json_close(&json, ']');
	json_number(&json, "left_out", top && top < diff->nr ? diff->nr - top : 0);
	json_close(&json, '}');
	return err;
}

int print_diff(FILE *out, const struct diff *diff, const struct diff_opts *opts)
{
	switch (opts->format) {
	case DIFF_FOLDED:
		return print_diff_folded(out, diff, opts->top);
	case DIFF_HTML:
		return print_diff_html(out, diff, opts->top);
	case DIFF_CSV:
		return put_diff_csv(out, diff, opts->top);
	case DIFF_JSON:
		return put_diff_json(out, diff, opts->top);
	default:
		return put_diff_text(out, diff, opts->top);
	}
}
