/* json.c - see json.h */
#include "report/base/json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/base/text.h"

#define DEEPEST_LINES 2 /* values up to this depth have lines of their own */

/* What precedes a value.  Members and objects have lines of their own. */
static void begin(struct json *json, const char *key, bool line)
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
	begin(json, key, true);
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
	begin(json, key, false);
	fprintf(json->out, "%" PRIu64, number);
}

void json_signed(struct json *json, const char *key, int64_t number)
{
	begin(json, key, false);
	fprintf(json->out, "%" PRId64, number);
}

void json_fraction(struct json *json, const char *key, double number)
{
	begin(json, key, false);
	fprintf(json->out, "%.4f", number);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin(json, key, false);
	fputs(value ? "true" : "false", json->out);
}

/* @text is valid UTF-8 without control characters. */
static void put_text(FILE *out, const char *text)
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

	begin(json, key, false);
	fputc('"', json->out);
	/* without memory a name is worth less than a whole document */
	put_text(json->out, safe ? safe : "?");
	fputc('"', json->out);
	free(safe);
}
