/* table_rows.c - see table_rows.h */
#include "report/context/table_rows.h"

#include <inttypes.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/terminal/color.h"

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

void print_left_out(FILE *out, size_t nr, const char *one, const char *many,
		    struct live_amount amount)
{
	char number[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	if (nr)
		fprintf(out, "left out: %s %s with %s %s, %s\n", text_number(number, nr),
			nr == 1 ? one : many, text_number(blocks, amount.blocks),
			text_blocks(amount.blocks), size_text(bytes, amount.bytes));
}

void print_place(FILE *out, const struct place *place, bool color)
{
	fprintf(out, "    %s%s%s%s",
		color_of(color, place->function[0] == '[' ? COLOR_REMARK : COLOR_NAME),
		place->function, color_of(color, COLOR_END), place->inlined ? " (inlined)" : "");
	if (place->told)
		fprintf(out, " [%s]", place->told);
	if (place->file[0])
		fprintf(out, "  %s%s:%" PRIu32 "%s", color_of(color, COLOR_PLACE), place->file,
			place->line, color_of(color, COLOR_END));
	fputc('\n', out);
}
