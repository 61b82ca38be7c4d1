/* csv.c - see csv.h */
#include "report/context/csv.h"

#include <string.h>

static void part(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '"')
			fputs("\"\"", out);
		else
			fputc(*text, out);
}

static void guard(FILE *out, const char *first)
{
	if (*first && strchr("=+-@", *first))
		fputc('\'', out);
}

void csv_text(FILE *out, const char *text)
{
	fputc('"', out);
	guard(out, text);
	part(out, text);
	fputc('"', out);
}

void csv_path(FILE *out, const struct places *places, size_t i)
{
	size_t nr;
	const uint32_t *path = places_path(places, i, &nr);

	fputc('"', out);
	guard(out, places_get(places, path[nr - 1])->function);
	while (nr--) {
		part(out, places_get(places, path[nr])->function);
		if (places_get(places, path[nr])->inlined)
			part(out, " (inlined)");
		if (nr)
			fputc(';', out);
	}
	fputc('"', out);
}
