/* print_growth.c - see print_growth.h */
#include "report/output/print_growth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/context/table_rows.h"
#include "report/machine/print_json.h"
#include "report/stats/growth_shape.h"
#include "report/terminal/color.h"

#define SCHEMA_VERSION 1
#define REMARK \
	"A shape is evidence, not proof: a cache may grow for hours, and a leak may come to rest."

struct line {
	size_t i; /* in the view */
	enum growth_shape shape;
	double per_minute; /* bytes that it grew in the second half of the time, net */
	double freed;	   /* share of its blocks */
	struct growth_stack growth;
};

static struct line line_of(const struct report_data *export, const struct growth *growth, size_t i)
{
	const struct stack *stack = view_stack(export->view, i);
	struct line line = {.i = i, .growth = growth_of(growth, export->view->chosen[i])};
	struct growth_span span = growth_span_of(growth, &export->leaks->chosen);

	line.per_minute = 60 * growth_rate_of(&line.growth, &span, growth->width_ns);
	if (stack->allocated.blocks)
		line.freed = (double)stack->freed.blocks / (double)stack->allocated.blocks;
	line.shape = growth_shape_of(&line.growth, &span, line.freed);
	return line;
}

static int compare_growth(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->shape != y->shape)
		return x->shape < y->shape ? -1 : 1;
	if (x->shape == SHAPE_GROWING && x->per_minute != y->per_minute)
		return x->per_minute > y->per_minute ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

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

/* A rate with its sign, and commas. */
static const char *rate_text(char buf[TEXT_NUMBER_MAX + 1], double rate)
{
	double size = rate < 0 ? -rate : rate;

	buf[0] = rate < 0 ? '-' : '+';
	text_number(buf + 1, size < 0x1p63 ? (uint64_t)(size + 0.5) : UINT64_MAX);
	return buf;
}

/* What speaks against a leak, if something does. */
static void put_remark(FILE *out, const struct line *line)
{
	const struct growth_stack *growth = &line->growth;
	char blocks[TEXT_NUMBER_MAX], bytes[TEXT_NUMBER_MAX], age[TEXT_NUMBER_MAX];

	if (line->shape == SHAPE_FILLING && growth->old_blocks)
		fprintf(out, "    %s of its blocks were freed at age %s (median)\n",
			text_number(blocks, growth->old_blocks),
			time_text(growth->old_age_ns, age));
	if (growth->replaced.blocks)
		fprintf(out, "    as many older blocks were freed as %s of its blocks, %s bytes\n",
			text_number(blocks, growth->replaced.blocks),
			text_number(bytes, growth->replaced.bytes));
}

static void put_text_line(FILE *out, const struct report_data *export,
			  const struct stack_notes *notes, const struct line *line)
{
	const struct stack *stack = view_stack(export->view, line->i);
	const char *process = report_data_process(export, line->i);
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX], life[TEXT_NUMBER_MAX] = "-";
	char grown[TEXT_NUMBER_MAX + 1];
	bool color = export->view->opts.color;
	size_t nr;
	const uint32_t *path = places_path(export->places, line->i, &nr);

	if (line->growth.has_lifetime)
		time_text(line->growth.lifetime_ns, life);
	fprintf(out, "%s%-9s%14s%12s%16s%7.1f %%%12s%s\n",
		color_of(color, line->shape == SHAPE_GROWING ? COLOR_HEAVY : COLOR_NONE),
		growth_shape_name(line->shape), text_number(bytes, stack->bytes),
		text_number(blocks, stack->blocks), rate_text(grown, line->per_minute),
		100 * line->freed, life, color_of(color, COLOR_END));
	for (size_t at = 0; at < nr; at++)
		print_place(out, &export->places->all[path[at]], color);
	if (process)
		fprintf(out, "    %s\n", process);
	put_remark(out, line);
	stack_notes_print(out, export, notes, line->i, "    ");
}

/* What is outstanding of @nr lines. */
static struct live_amount amount_of(const struct report_data *export, const struct line *lines,
				    size_t nr)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < nr; i++)
		live_amount_add(&sum, stack_outstanding(view_stack(export->view, lines[i].i)));
	return sum;
}

static int put_growth_text(FILE *out, const struct report_data *export, const struct line *lines,
			   size_t all, size_t nr)
{
	bool used[SHAPE_NR] = {0};
	struct stack_notes notes;

	if (!nr) {
		fputs("no outstanding blocks\n", out);
		return 0;
	}
	if (stack_notes_init(&notes, export->leaks))
		return -ENOMEM;
	fprintf(out, "%-9s%14s%12s%16s%9s%12s\n", "shape", "bytes", "blocks", "bytes/min", "freed",
		"lifetime");
	for (size_t i = 0; i < nr; i++) {
		put_text_line(out, export, &notes, &lines[i]);
		used[lines[i].shape] = true;
	}
	stack_notes_release(&notes);
	fputs("\nbytes/min: growth in the second half of the recording; freed: share of the "
	      "stack's blocks;\nlifetime: median of those that were freed\n",
	      out);
	if (export->choice->older_ns || export->choice->from_ns)
		fputs("the recording: the part of it in which the selected blocks can have been "
		      "allocated\n",
		      out);
	for (enum growth_shape i = 0; i < SHAPE_NR; i++)
		if (used[i])
			fprintf(out, "%s: %s\n", growth_shape_name(i), growth_shape_meaning(i));
	fputs(REMARK "\n", out);
	if (nr < all) {
		fputc('\n', out);
		print_left_out(out, all - nr, "stack that grew less", "stacks that grew less",
			       amount_of(export, lines + nr, all - nr));
	}
	return 0;
}

static int put_growth_csv(FILE *out, const struct report_data *export, const struct line *lines,
			  size_t nr)
{
	fputs("shape,outstanding_bytes,outstanding_blocks,bytes_per_minute,share_freed,"
	      "median_lifetime_ns,replaced_bytes,stack,pid\r\n",
	      out);
	for (size_t i = 0; i < nr; i++) {
		const struct line *line = &lines[i];
		const struct stack *stack = view_stack(export->view, line->i);

		fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%.0f,%.4f,",
			growth_shape_name(line->shape), stack->bytes, stack->blocks,
			line->per_minute, line->freed);
		if (line->growth.has_lifetime)
			fprintf(out, "%" PRIu64, line->growth.lifetime_ns);
		fprintf(out, ",%" PRIu64 ",", line->growth.replaced.bytes);
		csv_path(out, export->places, line->i);
		fprintf(out, ",%" PRIu32 "\r\n", report_data_pid(export, line->i));
	}
	return 0;
}

/* A rate as a whole number. */
static int64_t whole(double rate)
{
	if (rate >= 0x1p63 || rate < -0x1p63)
		return rate < 0 ? INT64_MIN : INT64_MAX;
	return (int64_t)(rate < 0 ? rate - 0.5 : rate + 0.5);
}

static void put_json_line(struct json *json, const struct report_data *export,
			  const struct stack_notes *notes, const struct line *line, size_t slices)
{
	json_open(json, NULL, '{');
	json_text(json, "shape", growth_shape_name(line->shape));
	json_signed(json, "bytes_per_minute", whole(line->per_minute));
	json_fraction(json, "share_freed", line->freed);
	if (line->growth.has_lifetime)
		json_number(json, "median_lifetime_ns", line->growth.lifetime_ns);
	if (line->growth.old_blocks) {
		json_number(json, "old_frees", line->growth.old_blocks);
		json_number(json, "old_frees_median_ns", line->growth.old_age_ns);
	}
	json_amount(json, "replaced", line->growth.replaced);
	json_open(json, "bytes_then", '[');
	for (size_t at = 0; at < slices; at++)
		json_number(json, NULL, line->growth.bytes[at]);
	json_close(json, ']');
	json_stack(json, export, notes, line->i);
	json_close(json, '}');
}

static void put_meanings(struct json *json)
{
	json_open(json, "shapes", '{');
	for (enum growth_shape i = 0; i < SHAPE_NR; i++)
		json_text(json, growth_shape_name(i), growth_shape_meaning(i));
	json_close(json, '}');
	json_text(json, "remark", REMARK);
}

static int put_growth_json(FILE *out, const struct report_data *export, const struct growth *growth,
			   const struct line *lines, size_t nr)
{
	size_t all = export->view->nr;
	struct json json = {.out = out};
	struct stack_notes notes;
	int err;

	if (stack_notes_init(&notes, export->leaks))
		return -ENOMEM;
	err = json_begin(&json, export, "mleak-growth", SCHEMA_VERSION);
	json_frames(&json, export->places);
	put_meanings(&json);
	json_open(&json, "until_ns", '[');
	for (size_t at = 0; at < growth->slices; at++)
		json_number(&json, NULL, print_growth_until_ns(export, growth, at));
	json_close(&json, ']');
	json_open(&json, "stacks", '[');
	for (size_t i = 0; i < nr; i++)
		put_json_line(&json, export, &notes, &lines[i], growth->slices);
	json_close(&json, ']');
	json_left_out(&json, "stacks", all - nr, amount_of(export, lines + nr, all - nr));
	json_end(&json, export);
	stack_notes_release(&notes);
	return err;
}

int print_growth(FILE *out, const struct report_data *export, const struct growth *growth,
		 const struct table_opts *opts)
{
	size_t nr = export->view->nr, shown = opts->top && opts->top < nr ? opts->top : nr;
	struct line *lines = calloc(nr + 1, sizeof(*lines));
	int err;

	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		lines[i] = line_of(export, growth, i);
	qsort(lines, nr, sizeof(*lines), compare_growth);
	if (opts->format == TABLE_JSON)
		err = put_growth_json(out, export, growth, lines, shown);
	else if (opts->format == TABLE_CSV)
		err = put_growth_csv(out, export, lines, shown);
	else
		err = put_growth_text(out, export, lines, nr, shown);
	free(lines);
	return err;
}

struct live_amount print_growth_growing(const struct report_data *export,
					const struct growth *growth, size_t *nr)
{
	struct live_amount sum = {0};

	*nr = 0;
	for (size_t i = 0; i < export->view->nr; i++) {
		struct line line = line_of(export, growth, i);

		if (line.shape != SHAPE_GROWING)
			continue;
		live_amount_add(&sum, stack_outstanding(view_stack(export->view, i)));
		++*nr;
	}
	return sum;
}
