/* parse_units.h - numbers with units, as options give them */
#ifndef RECORD_PARSE_UNITS_H
#define RECORD_PARSE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Read the number that @text begins with and the K, M or G behind it, for multiples of 1,024, into
 * *@value.  *@rest is what follows; it points into @text.
 * Returns false, with *@value not to be used, when there is no number, or one above @max.
 */
bool parse_number(const char *text, uint64_t max, uint64_t *value, const char **rest);

/* Read @text, all of it a number of bytes, with K, M or G for multiples of 1,024.  Returns false
 * when it is none, or above @max. */
bool parse_bytes(const char *text, uint64_t max, uint64_t *bytes);

/* Read a time, in seconds or with the unit ms, s, m, h or d, into *@ns.  Returns false when it is
 * none, or not from 1 ms to 1e9 s. */
bool parse_time(const char *text, uint64_t *ns);

#endif
