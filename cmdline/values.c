/* values.c - see values.h */
#include "cmdline/values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* strtoull() takes a sign and white space, too. */
static int read_digits(const char *text, char **end, uint64_t *value)
{
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, end, 10);
	return errno ? -EINVAL : 0;
}

int value_number(const char *text, uint64_t *value)
{
	char *end;

	return read_digits(text, &end, value) || *end ? -EINVAL : 0;
}

int value_bytes(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	unsigned int shift = 0;
	const char *unit;
	char *end;

	if (read_digits(text, &end, value))
		return -EINVAL;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	if (toupper((unsigned char)*end) == 'B')
		end++;
	if (*end || __builtin_mul_overflow(*value, (uint64_t)1 << shift, value))
		return -EINVAL;
	return 0;
}

bool value_has_unit(const char *text)
{
	return text[strspn(text, "0123456789")] != '\0';
}

int value_time(const char *text, uint64_t *value)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},	  {"us", 1e3},	 {"ms", 1e6},	{"s", 1e9},
		     {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
	size_t digits = strspn(text, "0123456789.");
	double number;
	char *end;

	/* neither a sign, an exponent nor a word, of those that strtod() takes */
	if (!isdigit((unsigned char)text[*text == '.']))
		return -EINVAL;
	number = strtod(text, &end);
	if (end != text + digits)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		/* the largest double below 2^64 */
		if (number * units[i].ns > 18446744073709549568.0)
			return -EINVAL;
		*value = (uint64_t)(number * units[i].ns + 0.5);
		return 0;
	}
	return -EINVAL;
}

int value_address(const char *text, uint64_t *value)
{
	char *end;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X'))
		return value_number(text, value);
	if (!isxdigit((unsigned char)text[2]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 16);
	return errno || *end ? -EINVAL : 0;
}

int value_range(const char *text, uint64_t *start, uint64_t *end)
{
	size_t len = strcspn(text, "-");
	char first[32];

	if (len >= sizeof(first) || !text[len])
		return -EINVAL;
	memcpy(first, text, len);
	first[len] = '\0';
	return value_address(first, start) || value_address(text + len + 1, end) || *start >= *end
		       ? -EINVAL
		       : 0;
}
