/* print_csv.c - the stacks as rows of CSV, by RFC 4180 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/export.h"

/* @text without control characters, for between quotes. */
static void put_quoted(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '"')
			fputs("\"\"", out);
		else
			fputc(*text, out);
}

/* What a spreadsheet would take for a formula gets a quote before it. */
static const char *guard(const char *text)
{
	return *text && strchr("=+-@", *text) ? "'" : "";
}

static void put_field(FILE *out, const char *text)
{
	fprintf(out, ",\"%s", guard(text));
	put_quoted(out, text);
	fputc('"', out);
}

/* Outermost first, as in folded stacks. */
static void put_path(FILE *out, const struct places *places, size_t i)
{
	size_t nr;
	const uint32_t *path = places_path(places, i, &nr);

	fputs(",\"", out);
	for (size_t at = nr; at--;) {
		const char *function = places_get(places, path[at])->function;

		if (at == nr - 1)
			fputs(guard(function), out);
		put_quoted(out, function);
		if (at)
			fputc(';', out);
	}
	fputc('"', out);
}

static void put_row(FILE *out, const struct export *export, size_t i)
{
	const struct stack *stack = view_stack(export->view, i);
	size_t nr;
	const uint32_t *path = places_path(export->places, i, &nr);
	const struct place *leaf = places_get(export->places, path[0]);

	fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		stack->bytes, stack->blocks, stack->allocated.bytes, stack->allocated.blocks,
		stack->freed.bytes, stack->freed.blocks);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d",
		stack->peak.bytes, stack->peak.blocks, stack->temporary,
		export_since_start(export, stack->first_ns),
		export_since_start(export, stack->last_ns), stack->status == DWUNW_STATUS_ENDED);
	put_field(out, leaf->function);
	put_field(out, leaf->module);
	put_field(out, leaf->file);
	fprintf(out, ",%" PRIu32, leaf->line);
	put_path(out, export->places, i);
	fputs("\r\n", out);
}

int print_csv(FILE *out, const struct export *export)
{
	fputs("outstanding_bytes,outstanding_blocks,allocated_bytes,allocated_blocks,freed_bytes,"
	      "freed_blocks,peak_bytes,peak_blocks,temporary_blocks,first_ns,last_ns,complete,"
	      "function,module,file,line,stack\r\n",
	      out);
	for (size_t i = 0; i < view_nr(export->view); i++)
		put_row(out, export, i);
	return 0;
}
