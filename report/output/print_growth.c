/* print_growth.c - see print_growth.h */
#include "report/output/print_growth.h"

#include <errno.h>
#include <inttypes.h>

#include "report/base/sizes.h"
#include "report/context/growth_rows.h"
#include "report/context/table_rows.h"
#include "report/machine/print_json.h"
#include "report/name/stack_id.h"

#define SCHEMA_VERSION 1
static int put_growth_csv(FILE *out, const struct report_data *export,
			  const struct growth_row *rows, size_t nr)
{
	fputs("shape,outstanding_bytes,outstanding_blocks,bytes_per_minute,share_freed,"
	      "median_lifetime_ns,replaced_bytes,samples,bytes_per_minute_low,"
	      "bytes_per_minute_high,stack,pid,id",
	      out);
	fputs(export->by_verdict ? ",lost_bytes,lost_blocks\r\n" : "\r\n", out);
	for (size_t i = 0; i < nr; i++) {
		const struct growth_row *row = &rows[i];
		char id[STACK_ID_MAX];
		const struct stack *stack = view_stack(export->view, row->i);

		fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%.4f,",
			growth_shape_name(row->shape), stack->bytes, stack->blocks,
			size_rate_whole(row->per_minute), row->freed);
		if (row->growth.has_lifetime)
			fprintf(out, "%" PRIu64, row->growth.lifetime_ns);
		fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",",
			row->growth.replaced.bytes, row->samples, size_rate_whole(row->low),
			size_rate_whole(row->high));
		csv_path(out, export->places, row->i);
		fprintf(out, ",%" PRIu32 ",%s", report_data_pid(export, row->i),
			stack_id_text(id, view_stack_id(export->view, row->i)));
		if (export->by_verdict)
			fprintf(out, ",%" PRIu64 ",%" PRIu64, stack->lost.bytes,
				stack->lost.blocks);
		fputs("\r\n", out);
	}
	return 0;
}

static void put_json_line(struct json *json, const struct report_data *export,
			  const struct stack_notes *notes, const struct growth_row *row,
			  size_t slices)
{
	json_open(json, NULL, '{');
	json_text(json, "shape", growth_shape_name(row->shape));
	json_signed(json, "bytes_per_minute", size_rate_whole(row->per_minute));
	json_signed(json, "bytes_per_minute_low", size_rate_whole(row->low));
	json_signed(json, "bytes_per_minute_high", size_rate_whole(row->high));
	json_number(json, "samples", row->samples);
	json_number(json, "group", row->group);
	json_fraction(json, "share_freed", row->freed);
	if (row->growth.has_lifetime)
		json_number(json, "median_lifetime_ns", row->growth.lifetime_ns);
	if (row->growth.old_blocks) {
		json_number(json, "old_frees", row->growth.old_blocks);
		json_number(json, "old_frees_median_ns", row->growth.old_age_ns);
	}
	json_amount(json, "replaced", row->growth.replaced);
	json_open(json, "bytes_then", '[');
	for (size_t at = 0; at < slices; at++)
		json_number(json, NULL, row->growth.bytes[at]);
	json_close(json, ']');
	json_stack(json, export, notes, row->i);
	json_close(json, '}');
}

static void put_meanings(struct json *json)
{
	json_open(json, "shapes", '{');
	for (enum growth_shape i = 0; i < SHAPE_NR; i++)
		json_text(json, growth_shape_name(i), growth_shape_meaning(i));
	json_close(json, '}');
	json_text(json, "remark", GROWTH_REMARK);
}

static int put_growth_json(FILE *out, const struct report_data *export, const struct growth *growth,
			   const struct growth_row *rows, size_t nr)
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
		put_json_line(&json, export, &notes, &rows[i], growth->slices);
	json_close(&json, ']');
	json_left_out(&json, "stacks", all - nr, growth_rows_amount(export, rows + nr, all - nr));
	json_end(&json, export);
	stack_notes_release(&notes);
	return err;
}

int print_growth(FILE *out, const struct report_data *export, const struct growth *growth,
		 const struct table_opts *opts)
{
	struct growth_rows rows;
	int err = growth_rows_init(&rows, export, growth);
	size_t shown = opts->top && opts->top < rows.nr ? opts->top : rows.nr;

	if (!err && opts->format == TABLE_JSON)
		err = put_growth_json(out, export, growth, rows.all, shown);
	else if (!err && opts->format == TABLE_CSV)
		err = put_growth_csv(out, export, rows.all, shown);
	else if (!err)
		err = print_growth_text(out, export, &rows, opts->top);
	growth_rows_release(&rows);
	return err;
}

int print_growth_growing(const struct report_data *export, const struct growth *growth, size_t *nr,
			 struct live_amount *sum)
{
	struct growth_rows rows;
	int err = growth_rows_init(&rows, export, growth);

	*sum = (struct live_amount){0};
	for (*nr = 0; !err && *nr < rows.nr && rows.all[*nr].shape == SHAPE_GROWING;)
		++*nr;
	if (!err)
		*sum = growth_rows_amount(export, rows.all, *nr);
	growth_rows_release(&rows);
	return err;
}
