/* json.h - write JSON (RFC 8259) piece by piece
 *
 * Names come out as text_escape() would copy them, so the output is valid UTF-8 whatever was in
 * them.  "</" stands there as "<\/" and "<!" as "\u003c!": the text can be put into a script
 * element of HTML.
 */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Where the writing is.  All zero but out is before the first value. */
struct json {
	FILE *out;   /* errors of writing are left in it for ferror() */
	bool behind; /* behind a value: the next one needs a comma */
	int depth;
};

/* Each of these writes one value: as member @key of an object, or, @key NULL, in an array or as the
 * whole.  @key is ASCII without quotes or backslashes. */

/* Begin an object ('{') or an array ('['), whose end is json_close(). */
void json_open(struct json *json, const char *key, char bracket);

/* End it: '}' or ']'. */
void json_close(struct json *json, char bracket);

/* One that is not below zero. */
void json_number(struct json *json, const char *key, uint64_t number);

/* One that may be below zero. */
void json_signed(struct json *json, const char *key, int64_t number);

/* A fraction, to four decimals. */
void json_fraction(struct json *json, const char *key, double number);

/* null: it is not known. */
void json_null(struct json *json, const char *key);

/* true or false. */
void json_bool(struct json *json, const char *key, bool value);

/* @text may hold any bytes. */
void json_text(struct json *json, const char *key, const char *text);

#endif
