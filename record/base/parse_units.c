/* parse_units.c - see parse_units.h */
#include "record/base/parse_units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool parse_number(const char *text, uint64_t max, uint64_t *value, const char **rest)
{
	static const char units[] = "KMG";
	unsigned int shift = 0;
	const char *unit;
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || errno)
		return false;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	*rest = end;
	if (*value > max >> shift)
		return false;
	*value <<= shift;
	return true;
}

bool parse_bytes(const char *text, uint64_t max, uint64_t *bytes)
{
	const char *rest;

	return parse_number(text, max, bytes, &rest) && !*rest;
}

bool parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	/* neither a sign, nor a word, of those that strtod() takes */
	if (!isdigit((unsigned char)text[text[0] == '.']) || errno || !isfinite(value) ||
	    value <= 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double total = value * units[i].seconds;

		if (strcmp(end, units[i].unit) || total < 1e-3 || total > 1e9)
			continue;
		*ns = (uint64_t)(total * 1e9);
		return true;
	}
	return false;
}
