/* table_rows.c - see table_rows.h */
#include "report/context/table_rows.h"

#include <inttypes.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/name/short_name.h"
#include "report/terminal/color.h"
#include "report/view/recursion.h"

static void put_field_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '"')
			fputs("\"\"", out);
		else
			fputc(*text, out);
}

static void put_formula_guard(FILE *out, const char *first)
{
	if (*first && strchr("=+-@", *first))
		fputc('\'', out);
}

void csv_text(FILE *out, const char *text)
{
	fputc('"', out);
	put_formula_guard(out, text);
	put_field_text(out, text);
	fputc('"', out);
}

void csv_path(FILE *out, const struct places *places, size_t i)
{
	size_t nr;
	const uint32_t *path = places_path(places, i, &nr);

	fputc('"', out);
	put_formula_guard(out, places->all[path[nr - 1]].function);
	while (nr--) {
		put_field_text(out, places->all[path[nr]].function);
		if (places->all[path[nr]].inlined)
			put_field_text(out, " (inlined)");
		if (nr)
			fputc(';', out);
	}
	fputc('"', out);
}

static void put_left_out(FILE *out, size_t nr, const char *what, struct live_amount amount)
{
	char number[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	fprintf(out, "left out: %s %s with %s %s, %s", text_number(number, nr), what,
		text_number(blocks, amount.blocks), text_blocks(amount.blocks),
		size_text(bytes, amount.bytes));
}

void print_left_out(FILE *out, size_t nr, const char *one, const char *many,
		    struct live_amount amount)
{
	if (!nr)
		return;
	put_left_out(out, nr, nr == 1 ? one : many, amount);
	fputc('\n', out);
}

void print_limited(FILE *out, size_t nr, const char *one, const char *many,
		   struct live_amount amount)
{
	if (!nr)
		return;
	put_left_out(out, nr, nr == 1 ? one : many, amount);
	fputs("; --no-limit shows all\n", out);
}

#define INDENT 4

void print_place(FILE *out, const struct place *place, const struct view_opts *opts)
{
	bool color = opts && opts->color;
	char line[sizeof(":4294967295")];
	const char *told = place->told ? place->told : "",
		   *inlined = place->inlined ? " (inlined)" : "";
	size_t beside = INDENT + strlen(inlined) + (*told ? text_columns(told) + strlen(" []") : 0);

	snprintf(line, sizeof(line), ":%" PRIu32, place->line);
	if (place->file[0])
		beside += 2 + text_columns(place->file) + strlen(line);
	fprintf(out, "%*s%s", INDENT, "",
		color_of(color, place->function[0] == '[' ? COLOR_REMARK : COLOR_NAME));
	if (opts)
		name_print(out, place->function, name_room(opts->columns, beside));
	else
		fputs(place->function, out);
	fprintf(out, "%s%s", color_of(color, COLOR_END), inlined);
	if (*told)
		fprintf(out, " [%s]", told);
	if (place->file[0])
		fprintf(out, "  %s%s%s%s", color_of(color, COLOR_PLACE), place->file, line,
			color_of(color, COLOR_END));
	fputc('\n', out);
}

void print_place_range(FILE *out, const struct place_range *range, const struct view_opts *opts,
		       void (*print)(FILE *out, const struct place *place,
				     const struct view_opts *opts))
{
	uint32_t keys[VIEW_MAX_PATH];
	size_t nr, to, period, times = 1;
	const uint32_t *path = places_path(range->places, range->stack, &nr);

	to = range->to < nr ? range->to : nr;
	for (size_t at = range->from; at < to; at++)
		if (at < VIEW_MAX_PATH)
			keys[at] = range->places->numbers[path[at]];
	for (size_t at = range->from; at < to; at += period * times) {
		bool folds = !opts->full_recursion && to <= VIEW_MAX_PATH;

		period = folds ? recursion_at(keys, to, at, &times) : 1;
		for (size_t i = 0; i < period; i++) {
			fputs(range->indent, out);
			print(out, &range->places->all[path[at + i]], opts);
		}
		recursion_print(out, range->remark_indent, period, times);
	}
}
