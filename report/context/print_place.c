/* print_place.c - see print_place.h */
#include "report/context/print_place.h"

#include <inttypes.h>

#include "report/terminal/color.h"

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
