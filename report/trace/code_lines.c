/* code_lines.c - see code_lines.h; the tables are specified in doc/trace-format.md 4.24 */
#include "report/trace/code_lines.h"

#include <stdbool.h>

/* A table being read. */
struct lines {
	const uint8_t *at, *end;
	int64_t line;  /* of the entry that was read last */
	bool has_line; /* it has one */
	uint64_t to;   /* and ends so many bytes into the instructions */
};

static uint8_t next_byte(struct lines *l)
{
	return l->at < l->end ? *l->at++ : 0;
}

/* An integer by six bits, the lowest first; bit 6 says that more follow. */
static uint64_t next_varint(struct lines *l)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 60; shift += 6) {
		byte = next_byte(l);
		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return value;
}

/* The same with its sign in the lowest bit. */
static int64_t next_svarint(struct lines *l)
{
	uint64_t value = next_varint(l);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Read the next entry of a location table of CPython 3.11.  False: there is none. */
static bool next_location(struct lines *l)
{
	uint8_t first, kind;

	if (l->at >= l->end)
		return false;
	first = next_byte(l);
	kind = first >> 3 & 15;
	l->to += ((first & 7) + 1) * 2u;
	l->has_line = kind != 15;
	if (kind == 13 || kind == 14)
		l->line += next_svarint(l);
	else if (kind >= 10 && kind <= 12)
		l->line += kind - 10;
	/* columns follow; each entry begins with a byte that has its highest bit set */
	while (l->at < l->end && !(*l->at & 0x80))
		l->at++;
	return true;
}

/* The same of CPython 3.10: so many bytes more, and so many lines, or -128: it has none. */
static bool next_pair(struct lines *l)
{
	int8_t more;

	if (l->end - l->at < 2)
		return false;
	l->to += next_byte(l);
	more = (int8_t)next_byte(l);
	l->has_line = more != INT8_MIN;
	if (l->has_line)
		l->line += more;
	return true;
}

static uint32_t positive(int64_t line)
{
	return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

/* The line at @offset by the pairs of CPython 3.9 and before: each tells where the next one begins,
 * and how many lines more that has. */
static uint32_t line_by_starts(const struct mlk_code *code, uint32_t offset)
{
	int64_t line = code->first_line;
	uint64_t start = 0;

	for (uint32_t i = 0; i + 2 <= code->lines_len; i += 2) {
		start += code->lines[i];
		if (start > offset)
			break;
		line += (int8_t)code->lines[i + 1];
	}
	return positive(line);
}

uint32_t code_line(const struct mlk_code *code, uint32_t offset)
{
	struct lines l = {
		.at = code->lines, .end = code->lines + code->lines_len, .line = code->first_line};
	bool (*next)(struct lines *) = next_location;

	if (code->line_table == MLK_LINES_PLACE)
		return offset;
	if (code->line_table == MLK_LINES_CPYTHON_38)
		return line_by_starts(code, offset);
	if (code->line_table == MLK_LINES_CPYTHON_310)
		next = next_pair;
	else if (code->line_table != MLK_LINES_CPYTHON_311)
		return 0;
	while (next(&l))
		if (offset < l.to)
			return l.has_line ? positive(l.line) : 0;
	return 0;
}
