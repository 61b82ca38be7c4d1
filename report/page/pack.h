/* pack.h - numbers as text, for the data of the page: five bits a character
 *
 * A number is its groups of five bits, the lowest first, each a character of
 * "A-Za-z0-9-_": those up to 'f' end a number, the other 32 mean that more follow.
 */
#ifndef REPORT_PACK_H
#define REPORT_PACK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/base/json.h"

/* Text that grows. */
struct pack {
	char *text;
	size_t len;
	FILE *out;
	size_t nr; /* characters so far */
};

/* Begin.  Returns 0, or -ENOMEM and @pack is then empty. */
int pack_open(struct pack *pack);

/* Append @number. */
void pack_number(struct pack *pack, uint64_t number);

/* Append @number, which may be below zero: twice its amount, one less if it is. */
void pack_signed(struct pack *pack, int64_t number);

/* Write what was appended as member @key of @json, unless @json is NULL, and release @pack, which
 * may be empty.  Returns 0 or -ENOMEM. */
int pack_close(struct pack *pack, struct json *json, const char *key);

#endif
