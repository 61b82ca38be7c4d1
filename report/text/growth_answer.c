/* growth_answer.c - see growth_answer.h */
#include "report/text/growth_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"

#define MOST_SHOWN   3		      /* groups of stacks */
#define MIB_PER_HOUR (60 / 1048576.0) /* of a byte a minute */

/* Print the innermost functions of the view's stack @i. */
static void print_innermost(FILE *out, const struct report_data *export,
			    const struct growth_rows *rows, size_t i)
{
	char *line = growth_rows_innermost(rows, export->view, i, false);

	fputs(line ? line : "[no memory for its names]", out);
	free(line);
}

/* When the first of @nr rows was called first, in seconds from the start of the recording. */
static double since(const struct report_data *export, const struct growth_row *rows, size_t nr)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < nr; i++) {
		const struct stack *stack = view_stack(export->view, rows[i].i);

		if (stack->first_ns < first)
			first = stack->first_ns;
	}
	return (double)report_data_since_start(export, first) / 1e9;
}

/* What grows: so many bytes a minute, by so many stacks. */
static double growth_of_rows(const struct growth_rows *rows, size_t *nr)
{
	double sum = 0;

	for (*nr = 0; *nr < rows->nr && rows->all[*nr].shape == SHAPE_GROWING; ++*nr)
		sum += rows->all[*nr].per_minute;
	return sum;
}

/* How many of the rows from @first on, up to @end, are of groups with the same innermost functions.
 */
static size_t alike(const struct report_data *export, const struct growth_rows *rows, size_t first,
		    size_t end)
{
	char *line = growth_rows_innermost(rows, export->view, rows->all[first].i, false);
	size_t nr = growth_rows_in_group(rows, first);
	bool same = line != NULL;

	while (same && first + nr < end) {
		char *next =
			growth_rows_innermost(rows, export->view, rows->all[first + nr].i, false);

		same = next && !strcmp(line, next);
		nr += same ? growth_rows_in_group(rows, first + nr) : 0;
		free(next);
	}
	free(line);
	return nr;
}

/* What has @shape: the tree shows it, but it is no growth, and @why not. */
static void print_shape(FILE *out, const struct report_data *export, const struct growth_rows *rows,
			enum growth_shape shape, const char *why)
{
	char bytes[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX];
	size_t first = 0, end, groups = 0;
	struct live_amount amount;

	while (first < rows->nr && rows->all[first].shape != shape)
		first++;
	for (end = first; end < rows->nr && rows->all[end].shape == shape;)
		end++;
	if (first == end)
		return;
	amount = growth_rows_amount(export, &rows->all[first], end - first);
	fprintf(out, "  %-14s %s in %s %s: %s\n", growth_shape_name(shape),
		size_text(bytes, amount.bytes), text_number(number, end - first),
		end - first == 1 ? "stack" : "stacks", why);
	for (; first < end && groups < MOST_SHOWN; groups++) {
		size_t nr = alike(export, rows, first, end);

		amount = growth_rows_amount(export, &rows->all[first], nr);
		fprintf(out, "    %s: ", size_text(bytes, amount.bytes));
		print_innermost(out, export, rows, rows->all[first].i);
		fputc('\n', out);
		first += nr;
	}
	if (first < end)
		fprintf(out, "    and %s more\n", text_number(number, end - first));
}

bool growth_is_told(const struct report_data *export)
{
	return growth_shapes_tell(&export->leaks->chosen) && !replay_only_counted(export->leaks);
}

/* Why nothing can be told of growth; NULL: it can. */
static const char *why_not_told(const struct report_data *export)
{
	const struct chosen *chosen = &export->leaks->chosen;

	if (replay_only_counted(export->leaks))
		return "allocations that were only counted: none was recorded in full";
	if (growth_time_is_short(chosen))
		return "less than a second";
	return growth_shapes_tell(chosen)
		       ? NULL
		       : "blocks that were given out from some moment on, which all "
			 "grow from nothing";
}

/* Of the rows from @first to @end that are unclear, those that @may_replace older blocks or not. */
static void print_unclear_rows(FILE *out, const struct report_data *export,
			       const struct growth_rows *rows, size_t first, size_t end,
			       bool may_replace)
{
	size_t left = 0, shown = 0, nr;
	char number[TEXT_NUMBER_MAX], older[TEXT_NUMBER_MAX];

	for (size_t i = first; i < end; i++)
		left += growth_may_replace(&rows->all[i].growth) == may_replace;
	if (!left)
		return;
	fprintf(out, "  unclear        %s %s grew: ", text_number(number, left),
		left == 1 ? "stack" : "stacks");
	if (may_replace)
		fprintf(out,
			"%s older %s freed, of unknown size, which %s may replace; to "
			"tell, %s\n",
			text_number(older, rows->all[first].growth.unsized),
			rows->all[first].growth.unsized == 1 ? "block was" : "blocks were",
			left == 1 ? "it" : "they",
			export->meta->of_kernel ? "choose some by --comm or --cache"
						: "record all allocations");
	else
		fprintf(out, "the recording is short for the age at which %s blocks are freed\n",
			left == 1 ? "its" : "their");
	for (; first < end && shown < MOST_SHOWN; first += nr) {
		struct growth_row row;

		nr = growth_rows_in_group(rows, first);
		if (growth_may_replace(&rows->all[first].growth) != may_replace)
			continue;
		row = growth_rows_sum(export, &rows->all[first], nr);
		fprintf(out, "    %+.1f MiB/h: ", row.per_minute * MIB_PER_HOUR);
		print_innermost(out, export, rows, row.i);
		fputc('\n', out);
		left -= nr < left ? nr : left;
		shown++;
	}
	if (first < end && left)
		fprintf(out, "    and %s more\n", text_number(number, left));
}

/* What grew, but it may as well be a cache. */
static void print_unclear(FILE *out, const struct report_data *export,
			  const struct growth_rows *rows)
{
	size_t first = 0, end;

	while (first < rows->nr && rows->all[first].shape < SHAPE_UNCLEAR)
		first++;
	for (end = first; end < rows->nr && rows->all[end].shape == SHAPE_UNCLEAR;)
		end++;
	print_unclear_rows(out, export, rows, first, end, false);
	print_unclear_rows(out, export, rows, first, end, true);
}

static void print_answer(FILE *out, const struct report_data *export,
			 const struct growth_rows *rows)
{
	char number[TEXT_NUMBER_MAX], of[TEXT_NUMBER_MAX];
	size_t growing, shown = 0;
	double sum = growth_of_rows(rows, &growing);

	if (!growing && replay_lost(export->leaks)) {
		fprintf(out,
			"  growing        nothing was seen, but %s %s lost: what grew may be among "
			"them\n",
			text_number(number, replay_lost(export->leaks)),
			replay_lost(export->leaks) == 1 ? "event was" : "events were");
		return;
	}
	if (!growing) {
		fputs("  growing        nothing: no stack had more after each quarter of the "
		      "recording, and kept its old blocks\n",
		      out);
		return;
	}
	fprintf(out, "  growing        %+.1f MiB/h, by %s of %s %s\n", sum * MIB_PER_HOUR,
		text_number(number, growing), text_number(of, rows->nr),
		rows->nr == 1 ? "stack" : "stacks");
	for (size_t groups = 0; shown < growing && groups < MOST_SHOWN; groups++) {
		size_t nr = growth_rows_in_group(rows, shown);
		struct growth_row row = growth_rows_sum(export, &rows->all[shown], nr);

		fprintf(out, "    %+.1f MiB/h since %.1f s: ", row.per_minute * MIB_PER_HOUR,
			since(export, &rows->all[shown], nr));
		print_innermost(out, export, rows, row.i);
		fputc('\n', out);
		shown += nr;
	}
	if (shown < growing)
		fprintf(out, "    and %s more\n", text_number(number, growing - shown));
}

void print_growth_answer(FILE *out, const struct report_data *export,
			 const struct growth_rows *rows)
{
	const char *why_not = why_not_told(export);

	if (why_not) {
		fprintf(out, "  growing        not told of %s\n", why_not);
		return;
	}
	print_answer(out, export, rows);
	print_unclear(out, export, rows);
	print_shape(out, export, rows, SHAPE_FILLING,
		    "more than at half of the time, but old blocks are freed");
	print_shape(out, export, rows, SHAPE_REPLACING,
		    "as many older blocks were freed, so this did not grow");
}

bool print_growing(FILE *out, const struct report_data *export, const struct growth_rows *rows)
{
	char number[TEXT_NUMBER_MAX];
	size_t growing, nr;
	struct growth_row row;

	growth_of_rows(rows, &growing);
	if (!growing || why_not_told(export))
		return false;
	nr = growth_rows_in_group(rows, 0);
	row = growth_rows_sum(export, rows->all, nr);
	fputs("growing: ", out);
	print_innermost(out, export, rows, row.i);
	fprintf(out, ", %+.1f MiB/h", row.per_minute * MIB_PER_HOUR);
	if (nr < growing)
		fprintf(out, ", and %s more %s", text_number(number, growing - nr),
			growing - nr == 1 ? "stack" : "stacks");
	return true;
}

void print_growth_verdict(FILE *out, const struct report_data *export,
			  const struct growth_rows *rows)
{
	const char *why_not = why_not_told(export);
	const uint64_t lost = replay_lost(export->leaks);
	char number[TEXT_NUMBER_MAX];

	if (why_not) {
		fprintf(out, "growing: not told of %s", why_not);
		return;
	}
	if (print_growing(out, export, rows))
		return;
	if (lost)
		fprintf(out, "nothing was seen to grow all the time, but %s %s lost",
			text_number(number, lost), lost == 1 ? "event was" : "events were");
	else
		fputs("nothing grew all the time", out);
}

void print_growth_line(FILE *out, const struct report_data *export, const struct growth_rows *rows)
{
	fputc('\n', out);
	print_growth_verdict(out, export, rows);
	fputs("; to see how stacks grew: mleak report --growth ", out);
	text_print(out, text_trace_argument(export->path));
	fputc('\n', out);
}
