/* print_growth_text.c - how stacks grew, for people: stacks with the same innermost functions are
 * one row, with its variants below */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/arena_hint.h"
#include "report/context/stack_notes.h"
#include "report/context/table_rows.h"
#include "report/output/print_growth.h"
#include "report/terminal/color.h"

#define MOST_VARIANTS 5
#define ROWS_BESIDE   4		       /* of a stack that are no frames */
#define MIB_PER_HOUR  (60 / 1048576.0) /* of a byte a minute */

/* A time in the largest unit of which it is at least one. */
static const char *time_text(uint64_t ns, char buf[TEXT_NUMBER_MAX])
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{86400e9, "d"}, {3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if ((double)ns >= units[i].ns) {
			snprintf(buf, TEXT_NUMBER_MAX, "%.1f %s", (double)ns / units[i].ns,
				 units[i].name);
			return buf;
		}
	snprintf(buf, TEXT_NUMBER_MAX, "%.0f us", (double)ns / 1e3);
	return buf;
}

/* What speaks against a leak, if something does. */
static void put_remark(FILE *out, const struct growth_row *row)
{
	const struct growth_stack *growth = &row->growth;
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX], age[TEXT_NUMBER_MAX];

	if ((row->shape == SHAPE_FILLING || row->shape == SHAPE_UNCLEAR) && growth->old_blocks)
		fprintf(out, "    %s of its blocks were freed at age %s (median)%s\n",
			text_number(blocks, growth->old_blocks), time_text(growth->old_age_ns, age),
			row->shape == SHAPE_UNCLEAR ? ": the recording is short for that" : "");
	if (growth->replaced.blocks)
		fprintf(out, "    as many older blocks were freed as %s of its blocks, %s\n",
			text_number(blocks, growth->replaced.blocks),
			size_text(bytes, growth->replaced.bytes));
}

/* Of a sample: on how much its figures rest.  Where blocks are freed, growth is no sum of samples.
 */
static void put_interval(FILE *out, const struct growth_row *row, bool told)
{
	char samples[TEXT_NUMBER_MAX], low[SIZE_TEXT_MAX], high[SIZE_TEXT_MAX];

	if (row->low >= row->high)
		return;
	fprintf(out, "    %s %s", text_number(samples, row->samples),
		row->samples == 1 ? "sample" : "samples");
	if (told && row->shape <= SHAPE_UNEVEN)
		fprintf(out, ": %s to %s/min (95 %%)", size_rate_cell(low, row->low),
			size_rate_text(high, row->high));
	fputc('\n', out);
}

static void put_figures(FILE *out, const struct report_data *export, const struct growth_row *row,
			struct live_amount amount)
{
	bool color = export->view->opts.color, told = growth_shapes_tell(&export->leaks->chosen);
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX], life[TEXT_NUMBER_MAX] = "-";
	char grown[SIZE_TEXT_MAX], rate[TEXT_NUMBER_MAX] = "-";

	if (told)
		snprintf(rate, sizeof(rate), "%+.1f", row->per_minute * MIB_PER_HOUR);
	if (row->growth.has_lifetime)
		time_text(row->growth.lifetime_ns, life);
	fprintf(out, "%s%-9s%14s%12s%16s%11s%7.1f %%%12s%s\n",
		color_of(color, row->shape == SHAPE_GROWING ? COLOR_HEAVY : COLOR_NONE),
		growth_shape_name(row->shape), size_cell(bytes, amount.bytes),
		text_number(blocks, amount.blocks),
		told ? size_rate_cell(grown, row->per_minute) : "-", rate, 100 * row->freed, life,
		color_of(color, COLOR_END));
}

/* How many innermost places all @nr rows have in common: the last is their deepest common frame. */
static size_t common_places(const struct places *places, const struct growth_row *rows, size_t nr)
{
	size_t common;
	const uint32_t *first = places_path(places, rows[0].i, &common);

	for (size_t i = 1; i < nr; i++) {
		size_t len, same = 0;
		const uint32_t *path = places_path(places, rows[i].i, &len);

		while (same < common && same < len && path[same] == first[same])
			same++;
		common = same;
	}
	return common;
}

static void put_places(FILE *out, const struct report_data *export, size_t i, size_t from,
		       size_t to, const char *indent)
{
	const struct place_range range = {
		export->places, i, from, to, indent, *indent ? "        " : "    "};

	print_place_range(out, &range, &export->view->opts, print_place);
}

/* Do the @nr rows have no other places than the @common ones? */
static bool is_whole(const struct report_data *export, const struct growth_row *rows, size_t nr,
		     size_t common)
{
	for (size_t i = 0; i < nr; i++) {
		size_t len;

		places_path(export->places, rows[i].i, &len);
		if (len > common)
			return false;
	}
	return true;
}

static void put_variants(FILE *out, const struct report_data *export, const struct growth_row *rows,
			 size_t nr, size_t common)
{
	char number[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX], grown[SIZE_TEXT_MAX];

	if (is_whole(export, rows, nr, common)) {
		fprintf(out, "    %s stacks with the same lines\n", text_number(number, nr));
		return;
	}
	fprintf(out, "    %s stacks, which differ in their callers:\n", text_number(number, nr));
	for (size_t i = 0; i < nr && i < MOST_VARIANTS; i++) {
		const struct stack *stack = view_stack(export->view, rows[i].i);

		fprintf(out, "      %s in %s %s, %s/min\n", size_text(bytes, stack->bytes),
			text_number(number, stack->blocks), text_blocks(stack->blocks),
			size_rate_text(grown, rows[i].per_minute));
		put_places(out, export, rows[i].i, common, SIZE_MAX, "    ");
	}
	if (nr > MOST_VARIANTS)
		fprintf(out, "      and %s more\n", text_number(number, nr - MOST_VARIANTS));
}

static struct live_amount lost_of(const struct report_data *export, const struct growth_row *rows,
				  size_t nr)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < nr; i++)
		live_amount_add(&sum, view_stack(export->view, rows[i].i)->lost);
	return sum;
}

static void put_group(FILE *out, const struct report_data *export, const struct stack_notes *notes,
		      const struct growth_row *rows, size_t nr)
{
	struct growth_row sum = growth_rows_sum(export, rows, nr);
	struct live_amount amount = growth_rows_amount(export, rows, nr);
	const char *process = report_data_process(export, rows[0].i);
	size_t common = nr > 1 ? common_places(export->places, rows, nr) : SIZE_MAX;

	put_figures(out, export, &sum, amount);
	put_places(out, export, rows[0].i, 0, common, "");
	if (process)
		fprintf(out, "    %s\n", process);
	put_interval(out, &sum, growth_shapes_tell(&export->leaks->chosen));
	put_remark(out, &sum);
	arena_hint_print(out, export, &sum, amount);
	if (nr > 1)
		stack_notes_lost(out, export, lost_of(export, rows, nr), "    ");
	if (nr > 1)
		put_variants(out, export, rows, nr, common);
	else
		stack_notes_print(out, export, notes, rows[0].i, "    ");
}

static void put_legend(FILE *out, const struct report_data *export, const bool used[SHAPE_NR])
{
	fprintf(out,
		"\n%s, MiB/h: net growth in the second half of the recording; freed: share of "
		"the stack's\nblocks; lifetime: median of those that were freed\n",
		size_rate_title("bytes/min", "per min"));
	if (export->choice->older_ns || export->choice->from_ns)
		fputs("the recording: the part of it in which the selected blocks can have been "
		      "allocated\n",
		      out);
	for (enum growth_shape i = 0; i < SHAPE_NR; i++)
		if (used[i])
			fprintf(out, "%s: %s\n", growth_shape_name(i), growth_shape_meaning(i));
	fputs(GROWTH_REMARK "\n", out);
}

int print_growth_text(FILE *out, const struct report_data *export, const struct growth_rows *rows,
		      size_t top)
{
	bool used[SHAPE_NR] = {0};
	struct stack_notes notes;
	size_t shown = 0, lines = 0, limit = export->view->opts.rows;

	if (!rows->nr) {
		print_no_blocks(out, export);
		return 0;
	}
	if (stack_notes_init(&notes, export->leaks))
		return -ENOMEM;
	fprintf(out, "%-9s%14s%12s%16s%11s%9s%12s\n", "shape", size_title(), "blocks",
		size_rate_title("bytes/min", "per min"), "MiB/h", "freed", "lifetime");
	for (size_t groups = 0; shown < rows->nr && (!top || groups < top); groups++) {
		size_t nr = growth_rows_in_group(rows, shown), frames;

		places_path(export->places, rows->all[shown].i, &frames);
		lines += frames + ROWS_BESIDE;
		if (limit && groups && lines > limit)
			break;

		put_group(out, export, &notes, &rows->all[shown], nr);
		used[rows->all[shown].shape] = true;
		shown += nr;
	}
	stack_notes_release(&notes);
	put_legend(out, export, used);
	if (shown < rows->nr) {
		fputc('\n', out);
		(limit ? print_limited : print_left_out)(
			out, rows->nr - shown, "stack that grew less", "stacks that grew less",
			growth_rows_amount(export, rows->all + shown, rows->nr - shown));
	}
	return 0;
}
