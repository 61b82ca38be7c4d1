/* text.c - see text.h */
#include "report/base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_MAX 16 /* bytes of the longest escape, "\u{10FFFF}", and the NUL */

struct range {
	uint32_t first, last;
};

/* Unicode 15: C1 controls, bidirectional controls, invisible and line-breaking characters */
static const struct range unsafe[] = {
	{0x80, 0x9f},	  {0xad, 0xad},	    {0x61c, 0x61c},	{0x180e, 0x180e},
	{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},	{0xfeff, 0xfeff},
	{0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f},
};

static bool is_safe(uint32_t c)
{
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
		if (c >= unsafe[i].first && c <= unsafe[i].last)
			return false;
	return true;
}

/* The character that begins at @s (not at its end), and its length in *@len; when the bytes there
 * are no UTF-8, *@len is 0 and the first byte is returned. */
static uint32_t decode(const unsigned char *s, size_t *len)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c;

	*len = 0;
	if (s[0] < 0x80) {
		*len = 1;
		return s[0];
	}
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return s[0];
	size_t want = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	c = s[0] & (0x7fu >> want);
	for (size_t i = 1; i < want; i++) {
		/* the NUL at the end is no continuation, so this never reads behind it */
		if ((s[i] & 0xc0) != 0x80)
			return s[0];
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < smallest[want] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return s[0];
	*len = want;
	return c;
}

/* Write the safe form of the next character of *@text to @unit, and step over it. */
static size_t next_unit(const char **text, char unit[UNIT_MAX])
{
	size_t len;
	uint32_t c = decode((const unsigned char *)*text, &len);
	const char *from = *text;

	*text += len ? len : 1;
	if (!len || c < 0x20 || c == 0x7f)
		return (size_t)snprintf(unit, UNIT_MAX, "\\x%02X", c);
	if (c >= 0x80 && !is_safe(c))
		return (size_t)snprintf(unit, UNIT_MAX, "\\u{%X}", c);
	memcpy(unit, from, len);
	return len;
}

char *text_escape(const char *text)
{
	size_t len = strlen(text), at = 0;
	char unit[UNIT_MAX];
	char *copy;

	/* one byte becomes four at most: "\xHH"; two become "\u{HH}", four "\u{HHHHH}" */
	if (len >= SIZE_MAX / 4)
		return NULL;
	copy = malloc(4 * len + 1);
	if (!copy)
		return NULL;
	while (*text) {
		size_t n = next_unit(&text, unit);

		memcpy(copy + at, unit, n);
		at += n;
	}
	copy[at] = '\0';
	return copy;
}

void text_print(FILE *out, const char *text)
{
	char unit[UNIT_MAX];

	while (*text) {
		size_t n = next_unit(&text, unit);

		fwrite(unit, 1, n, out);
	}
}

const char *text_blocks(uint64_t nr)
{
	return nr == 1 ? "block" : "blocks";
}

const char *text_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *text_trace_argument(const char *path)
{
	return strcmp(path, "-") ? path : "FILE";
}

const char *text_number(char buf[TEXT_NUMBER_MAX], uint64_t number)
{
	char digits[TEXT_NUMBER_MAX];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	char *to = buf;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}

size_t text_columns(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += (*text & 0xc0) != 0x80;
	return nr;
}
