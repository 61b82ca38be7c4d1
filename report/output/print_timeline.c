/* print_timeline.c - what was outstanding over time */
#include <inttypes.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/memory_then.h"
#include "report/machine/print_json.h"
#include "report/output/print_growth.h"

#define SCHEMA_VERSION 1

#define BAR_WIDTH      50 /* of the longest bar, where there is no terminal */
#define LEAST_BAR      10 /* on a narrow one */
#define MARKS_OF_SLICE 3  /* lines */
#define LEFT	       46 /* columns beside the bars, */
#define LEFT_RSS       16 /* and those of RSS, or of swap */

uint64_t print_growth_until_ns(const struct report_data *export, const struct growth *growth,
			       size_t i)
{
	const struct chosen *chosen = &export->leaks->chosen;
	uint64_t end = growth->start_ns + (i + 1) * growth->width_ns;

	if (i + 1 == growth->slices)
		end = chosen->end_ns;
	return end > chosen->start_ns ? end - chosen->start_ns : 0;
}

static double seconds_until(const struct report_data *export, const struct growth *growth, size_t i)
{
	return (double)print_growth_until_ns(export, growth, i) / 1e9;
}

/* The sample of @value at the end of slice @i.  False: it is not known. */
static bool value_at(const struct report_data *export, const struct growth *growth, size_t i,
		     enum mlk_memory_value value, uint64_t *bytes)
{
	const uint64_t start_ns = export->leaks->chosen.start_ns;
	const uint64_t from_ns = i ? print_growth_until_ns(export, growth, i - 1) : 0;

	return memory_then(export, value, start_ns + from_ns,
			   start_ns + print_growth_until_ns(export, growth, i), bytes);
}

static void put_bar(FILE *out, uint64_t bytes, uint64_t most, size_t longest)
{
	size_t width = most ? (size_t)((double)bytes / (double)most * (double)longest + 0.5) : 0;

	if (width)
		fputs("  ", out);
	for (size_t i = 0; i < width; i++)
		fputc('#', out);
	fputc('\n', out);
}

/* What there was of the view's stacks when most bytes of all stacks were. */
static struct live_amount peak_of(const struct view *view)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < view->nr; i++)
		live_amount_add(&sum, view_stack(view, i)->peak);
	return sum;
}

/* What no slice shows: the most that was outstanding at any time, and whose it was. */
static void put_peak(FILE *out, const struct report_data *export)
{
	struct live_amount all = export->leaks->figures->peak, shown = peak_of(export->view);
	const struct block_filter *choice = export->choice;
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];

	fprintf(out, "\npeak of all stacks%s: %s in %s %s; ",
		choice->thread || choice->older_ns || choice->from_ns ? ", of the selected blocks"
								      : "",
		size_text(bytes, all.bytes), text_number(blocks, all.blocks),
		text_blocks(all.blocks));
	fprintf(out, "of these stacks then: %s in %s %s\n", size_text(bytes, shown.bytes),
		text_number(blocks, shown.blocks), text_blocks(shown.blocks));
}

/* Do all stacks of the trace count, or one alone?  Else the most of each may be of other moments
 * within a slice. */
static bool is_exact(const struct report_data *export)
{
	return !export->view->sieved_out || export->view->nr < 2;
}

/* The sum of the view's stacks. */
static struct growth_stack sum_of_stacks(const struct report_data *export,
					 const struct growth *growth)
{
	struct growth_stack sum = {0}, all = growth_of_all(growth);

	for (size_t i = 0; i < export->view->nr; i++) {
		struct growth_stack stack = growth_of(growth, &export->view->chosen[i], 1);

		for (size_t at = 0; at < growth->slices; at++) {
			sum.bytes[at] += stack.bytes[at];
			sum.most[at] += stack.most[at];
		}
	}
	for (size_t at = 0; at < growth->slices; at++)
		if (sum.most[at] > all.most[at])
			sum.most[at] = all.most[at];
	return sum;
}

static void put_timeline_csv(FILE *out, const struct report_data *export,
			     const struct growth *growth, const struct growth_stack *sum)
{
	uint64_t bytes;

	fputs("seconds,outstanding_bytes,most_bytes,rss_bytes,swap_bytes\r\n", out);
	for (size_t at = 0; at < growth->slices; at++) {
		fprintf(out, "%.9f,%" PRIu64 ",%" PRIu64 ",", seconds_until(export, growth, at),
			sum->bytes[at], sum->most[at]);
		if (value_at(export, growth, at, MLK_MEMORY_RSS, &bytes))
			fprintf(out, "%" PRIu64, bytes);
		fputc(',', out);
		if (value_at(export, growth, at, MLK_MEMORY_SWAP, &bytes))
			fprintf(out, "%" PRIu64, bytes);
		fputs("\r\n", out);
	}
}

static int put_timeline_json(FILE *out, const struct report_data *export,
			     const struct growth *growth, const struct growth_stack *sum)
{
	struct json json = {.out = out};
	int err = json_begin(&json, export, "mleak-timeline", SCHEMA_VERSION);
	uint64_t bytes;

	json_amount(&json, "at_peak", peak_of(export->view));
	json_bool(&json, "exact", is_exact(export));
	json_open(&json, "intervals", '[');
	for (size_t at = 0; at < growth->slices; at++) {
		json_open(&json, NULL, '{');
		json_number(&json, "until_ns", print_growth_until_ns(export, growth, at));
		json_number(&json, "outstanding_bytes", sum->bytes[at]);
		json_number(&json, "most_bytes", sum->most[at]);
		if (value_at(export, growth, at, MLK_MEMORY_RSS, &bytes))
			json_number(&json, "rss_bytes", bytes);
		if (value_at(export, growth, at, MLK_MEMORY_SWAP, &bytes))
			json_number(&json, "swap_bytes", bytes);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_memory(&json, export, "memory_samples", true);
	json_end(&json, export);
	return err;
}

static void put_value(FILE *out, const struct report_data *export, const struct growth *growth,
		      size_t at, enum mlk_memory_value value)
{
	char size[SIZE_TEXT_MAX];
	uint64_t bytes;
	bool known = value_at(export, growth, at, value, &bytes);

	fprintf(out, "%16s", known ? size_cell(size, bytes) : "?");
}

/* What the RSS of several processes is not. */
static void put_rss_remark(FILE *out, const struct report_data *export)
{
	if (!export->leaks->chosen.pid && export->leaks->memory.nr > 1)
		fputs("\nRSS then: of all processes; what they share counts in each\n", out);
}

/* A line for each mark in slice @at, from mark @next on, few of many.  Returns the first behind. */
static size_t put_marks(FILE *out, const struct report_data *export, const struct growth *growth,
			size_t at, size_t next)
{
	const struct trace_marks *marks = &export->leaks->marks;
	uint64_t until_ns = export->meta->start_ns + print_growth_until_ns(export, growth, at);
	bool last = at + 1 == growth->slices;
	size_t first = next;

	for (; next < marks->nr && (last || marks->all[next].time_ns <= until_ns); next++) {
		if (next - first >= MARKS_OF_SLICE)
			continue;
		fprintf(out, "%10.3f s  mark:%zu ",
			(double)report_data_since_start(export, marks->all[next].time_ns) / 1e9,
			next + 1);
		text_print(out, trace_mark_text(&marks->all[next]));
		fputc('\n', out);
	}
	if (next - first > MARKS_OF_SLICE)
		fprintf(out, "%12s  and %zu more mark%s\n", "", next - first - MARKS_OF_SLICE,
			next - first - MARKS_OF_SLICE == 1 ? "" : "s");
	return next;
}

static void put_timeline_text(FILE *out, const struct report_data *export,
			      const struct growth *growth, const struct growth_stack *sum,
			      size_t columns)
{
	const bool known = memory_is_known(export), swapped = memory_was_swapped(export);
	const size_t left = LEFT + (known ? LEFT_RSS : 0) + (swapped ? LEFT_RSS : 0);
	size_t longest = !columns		      ? BAR_WIDTH
			 : columns > left + LEAST_BAR ? columns - left
						      : LEAST_BAR;
	char bytes[SIZE_TEXT_MAX], at_end[SIZE_TEXT_MAX];
	uint64_t most = 0;
	size_t next = 0;

	for (size_t at = 0; at < growth->slices; at++)
		most = sum->most[at] > most ? sum->most[at] : most;
	fprintf(out, "%12s%16s%16s", "until", size_rate_title("bytes then", "size then"),
		"most meanwhile");
	if (known)
		fprintf(out, "%16s", "RSS then");
	if (swapped)
		fprintf(out, "%16s", "swap then");
	fputc('\n', out);
	for (size_t at = 0; at < growth->slices; at++) {
		fprintf(out, "%10.3f s%16s%16s", seconds_until(export, growth, at),
			size_cell(at_end, sum->bytes[at]), size_cell(bytes, sum->most[at]));
		if (known)
			put_value(out, export, growth, at, MLK_MEMORY_RSS);
		if (swapped)
			put_value(out, export, growth, at, MLK_MEMORY_SWAP);
		put_bar(out, sum->most[at], most, longest);
		next = put_marks(out, export, growth, at, next);
	}
	if (!is_exact(export))
		fputs("\nmost meanwhile: an upper bound, as the stacks may have had their maximum "
		      "at different moments\n",
		      out);
	if (known)
		put_rss_remark(out, export);
	put_peak(out, export);
}

int print_timeline(FILE *out, const struct report_data *export, const struct growth *growth,
		   const struct table_opts *opts)
{
	struct growth_stack sum = sum_of_stacks(export, growth);

	if (opts->format == TABLE_JSON)
		return put_timeline_json(out, export, growth, &sum);
	if (opts->format == TABLE_CSV)
		put_timeline_csv(out, export, growth, &sum);
	else
		put_timeline_text(out, export, growth, &sum, export->view->opts.columns);
	return 0;
}
