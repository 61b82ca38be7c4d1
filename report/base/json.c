/* json.c - see json.h */
#include "report/base/json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/base/text.h"

#define DEEPEST_LINES 2 /* values up to this depth have lines of their own */

/* What precedes a value.  Members and objects have lines of their own. */
static void begin_value(struct json *json, const char *key, bool line)
{
	if (json->behind)
		fputc(',', json->out);
	if ((key || line) && json->depth && json->depth <= DEEPEST_LINES)
		fprintf(json->out, "\n%*s", json->depth, "");
	if (key)
		fprintf(json->out, "\"%s\":", key);
	json->behind = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
	begin_value(json, key, true);
	fputc(bracket, json->out);
	json->behind = false;
	json->depth++;
}

void json_close(struct json *json, char bracket)
{
	json->depth--;
	if (json->behind && json->depth < DEEPEST_LINES)
		fprintf(json->out, "\n%*s", json->depth, "");
	fputc(bracket, json->out);
	json->behind = true;
	if (!json->depth)
		fputc('\n', json->out);
}

void json_number(struct json *json, const char *key, uint64_t number)
{
	begin_value(json, key, false);
	fprintf(json->out, "%" PRIu64, number);
}

void json_signed(struct json *json, const char *key, int64_t number)
{
	begin_value(json, key, false);
	fprintf(json->out, "%" PRId64, number);
}

void json_null(struct json *json, const char *key)
{
	begin_value(json, key, false);
	fputs("null", json->out);
}

void json_fraction(struct json *json, const char *key, double number)
{
	begin_value(json, key, false);
	fprintf(json->out, "%.4f", number);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key, false);
	fputs(value ? "true" : "false", json->out);
}

/* @text is valid UTF-8 without control characters. */
static void put_string(FILE *out, const char *text)
{
	char before = '\0';

	for (; *text; before = *text++)
		if (*text == '"' || *text == '\\' || (*text == '/' && before == '<'))
			fprintf(out, "\\%c", *text);
		else if (*text == '<' && text[1] == '!')
			fputs("\\u003c", out);
		else
			fputc(*text, out);
}

void json_text(struct json *json, const char *key, const char *text)
{
	char *safe = text_escape(text);

	begin_value(json, key, false);
	fputc('"', json->out);
	/* without memory a name is worth less than a whole document */
	put_string(json->out, safe ? safe : "?");
	fputc('"', json->out);
	free(safe);
}
