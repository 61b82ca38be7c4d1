/* print_flat.c - one stack after the other, in the way of bcc's memleak */
#include <errno.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/report_data.h"
#include "report/context/stack_notes.h"
#include "report/context/table_rows.h"
#include "report/name/short_name.h"
#include "report/terminal/color.h"

#define INDENT 16 /* two tabs */

/* How many columns of a line of @place are not its name. */
static size_t columns_beside(const struct place *place)
{
	size_t nr = INDENT + (place->inlined ? strlen(" (inlined)") : 0);

	if (place->module[0])
		nr += strlen(" []") + text_columns(text_file_name(place->module));
	if (place->file[0])
		nr += 1 + text_columns(place->file);
	return nr + (place->line ? strlen(":12345") : 0);
}

static void put_place(FILE *out, const struct place *place, const struct view_opts *opts)
{
	size_t beside = columns_beside(place);
	bool color = opts->color;

	fprintf(out, "\t\t%s",
		color_of(color, place->function[0] == '[' ? COLOR_REMARK : COLOR_NAME));
	name_print(out, place->function, name_room(opts->columns, beside));
	fprintf(out, "%s%s", color_of(color, COLOR_END), place->inlined ? " (inlined)" : "");
	if (place->module[0])
		fprintf(out, " [%s]", text_file_name(place->module));
	fputs(color_of(color, COLOR_PLACE), out);
	if (place->file[0])
		fprintf(out, " %s", place->file);
	if (place->line)
		fprintf(out, ":%u", place->line);
	fprintf(out, "%s\n", color_of(color, COLOR_END));
}

#define ROWS_BESIDE 3 /* of a stack that are no frames */

/* How many stacks have room on the terminal: one at least. */
static size_t stacks_in_rows(const struct report_data *export)
{
	size_t rows = 0, nr, i = 0;

	for (; i < export->view->nr; i++) {
		places_path(export->places, i, &nr);
		rows += nr + ROWS_BESIDE;
		if (export->view->opts.rows && i && rows > export->view->opts.rows)
			break;
	}
	return i;
}

int print_flat(FILE *out, const struct report_data *export)
{
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];
	bool color = export->view->opts.color;
	size_t shown = stacks_in_rows(export);
	struct live_amount rest = {0};
	struct stack_notes notes;

	if (stack_notes_init(&notes, export->leaks))
		return -ENOMEM;
	if (!export->view->nr)
		print_no_blocks(out, export);
	for (size_t i = shown; i < export->view->nr; i++)
		live_amount_add(&rest, stack_outstanding(view_stack(export->view, i)));
	for (size_t i = 0; i < shown; i++) {
		const struct stack *stack = view_stack(export->view, i);
		const char *process = report_data_process(export, i);
		const struct place_range all = {export->places, i, 0, SIZE_MAX, "", "\t\t"};

		fprintf(out, "\t%s%s in %s %s from stack%s%s%s\n", color_of(color, COLOR_HEAVY),
			size_text(bytes, stack->bytes), text_number(blocks, stack->blocks),
			stack->blocks == 1 ? "allocation" : "allocations", process ? " of " : "",
			process ? process : "", color_of(color, COLOR_END));
		print_place_range(out, &all, &export->view->opts, put_place);
		stack_notes_print(out, export, &notes, i, "\t\t");
	}
	stack_notes_release(&notes);
	print_limited(out, export->view->nr - shown, "lighter stack", "lighter stacks", rest);
	print_left_out(out, export->view->left_out, "lighter stack", "lighter stacks",
		       export->view->left_out_amount);
	return 0;
}
