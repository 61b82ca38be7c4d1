/* csv.c - see csv.h */
#include "report/csv.h"

#include <string.h>

void csv_part(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '"')
			fputs("\"\"", out);
		else
			fputc(*text, out);
}

void csv_guard(FILE *out, const char *first)
{
	if (*first && strchr("=+-@", *first))
		fputc('\'', out);
}

void csv_text(FILE *out, const char *text)
{
	fputc('"', out);
	csv_guard(out, text);
	csv_part(out, text);
	fputc('"', out);
}
