/* pclntab.c - see pclntab.h */
#include "unwind/golang/pclntab.h"

#include <string.h>

#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

#define WORD	    8u	   /* bytes of an address */
#define HEADER	    72u	   /* bytes: the magic, and eight words */
#define ENTRY	    8u	   /* bytes of a function in the list */
#define MAX_NAME    65536u /* characters that are looked at */
#define MAX_FRAME   (1 << 30)
#define FUNCTION_18 40u /* bytes of a function's description */
#define FUNCTION_20 44u

/* Where in a function's description something is. */
enum {
	AT_NAME = 4,
	AT_FRAME = 16,
	AT_FILE = 20,
	AT_LINE = 24,
	AT_NR_TABLES = 28,
	AT_UNIT = 32,
	AT_FLAG_18 = 37,
	AT_FLAG_20 = 41,
};

static uint32_t get_u32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint64_t get_u64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* The part of the @len bytes at @bytes whose offset is word @i of the header: it goes on to the
 * end. */
static bool find_part(struct dwunw_pcln_part *part, const uint8_t *bytes, size_t len,
		      unsigned int i)
{
	uint64_t offset = get_u64(bytes + 8 + i * WORD);

	if (offset > len)
		return false;
	part->at = bytes + offset;
	part->len = len - (size_t)offset;
	return true;
}

/* Bytes of a function's description that are the same in all. */
static uint32_t description(const struct dwunw_pclntab *t)
{
	return t->lines ? FUNCTION_20 : FUNCTION_18;
}

static bool fill_table(struct dwunw_pclntab *t, const uint8_t *bytes, size_t len)
{
	uint64_t nr;

	if (len < HEADER || get_u32(bytes) < MAGIC_1_18 || get_u32(bytes) > MAGIC_1_20 ||
	    bytes[4] || bytes[5] || bytes[6] != 1 || bytes[7] != WORD)
		return false;
	t->lines = get_u32(bytes) == MAGIC_1_20;
	nr = get_u64(bytes + 8);
	t->text = get_u64(bytes + DWUNW_PCLNTAB_TEXT);
	if (!find_part(&t->names, bytes, len, 3) || !find_part(&t->units, bytes, len, 4) ||
	    !find_part(&t->files, bytes, len, 5) || !find_part(&t->values, bytes, len, 6) ||
	    !find_part(&t->functions, bytes, len, 7))
		return false;
	if (!nr || nr > UINT32_MAX / ENTRY - 1 || (nr + 1) * ENTRY > t->functions.len)
		return false;
	t->nr = (uint32_t)nr;
	return true;
}

bool dwunw_pclntab_open(struct dwunw_pclntab *t, const void *bytes, size_t len)
{
	memset(t, 0, sizeof(*t));
	if (bytes && fill_table(t, bytes, len))
		return true;
	memset(t, 0, sizeof(*t));
	return false;
}

/* Where function @i begins, counted from the first; of t->nr: where the last ends. */
static uint32_t start_of(const struct dwunw_pclntab *t, uint32_t i)
{
	return get_u32(t->functions.at + (size_t)i * ENTRY);
}

/* The string at @offset of @part; NULL: it does not end. */
static const char *string_at(const struct dwunw_pcln_part *part, uint64_t offset)
{
	size_t room;

	if (offset >= part->len)
		return NULL;
	room = part->len - (size_t)offset;
	if (room > MAX_NAME)
		room = MAX_NAME;
	return memchr(part->at + offset, 0, room) ? (const char *)part->at + offset : NULL;
}

bool dwunw_pclntab_function(const struct dwunw_pclntab *t, uint32_t i,
			    struct dwunw_pcln_function *f)
{
	const uint8_t *entry = t->functions.at + (size_t)i * ENTRY;
	uint32_t at = get_u32(entry + 4);

	if (at > t->functions.len || t->functions.len - at < description(t))
		return false;
	f->at = at;
	f->start = t->text + start_of(t, i);
	f->end = t->text + start_of(t, i + 1);
	f->name = string_at(&t->names, get_u32(t->functions.at + at + AT_NAME));
	f->flags = t->functions.at[at + (t->lines ? AT_FLAG_20 : AT_FLAG_18)];
	return f->name && f->end > f->start;
}

bool dwunw_pclntab_find(const struct dwunw_pclntab *t, uint64_t addr, struct dwunw_pcln_function *f)
{
	uint32_t lo = 0, hi = t->nr;
	uint64_t offset = addr - t->text;

	if (!t->nr || offset < start_of(t, 0) || offset >= start_of(t, t->nr))
		return false;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (start_of(t, mid) <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return dwunw_pclntab_function(t, lo, f) && addr >= f->start && addr < f->end;
}

/* Read a number of at most 32 bits at *@at, below @end. */
static bool next_number(const uint8_t **at, const uint8_t *end, uint32_t *number)
{
	*number = 0;
	for (unsigned int shift = 0; *at < end && shift < 32; shift += 7) {
		uint8_t byte = *(*at)++;

		*number |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* What the list of @f that its description has at @which says of @addr: steps of a value, each with
 * the bytes of code for which it holds. */
static bool value_at(const struct dwunw_pclntab *t, const struct dwunw_pcln_function *f,
		     unsigned int which, uint64_t addr, int32_t *value)
{
	uint32_t offset = get_u32(t->functions.at + f->at + which), step, bytes, sum = UINT32_MAX;
	const uint8_t *at = t->values.at + offset, *end = t->values.at + t->values.len;
	uint64_t pc = f->start;

	if (!offset || offset >= t->values.len)
		return false;
	for (bool first = true; next_number(&at, end, &step) && (step || first); first = false) {
		if (!next_number(&at, end, &bytes))
			return false;
		sum += step & 1 ? ~(step >> 1) : step >> 1;
		pc += bytes;
		*value = (int32_t)sum;
		if (addr < pc)
			return true;
		if (pc >= f->end)
			return false;
	}
	return false;
}

bool dwunw_pclntab_frame(const struct dwunw_pclntab *t, const struct dwunw_pcln_function *f,
			 uint64_t addr, int32_t *bytes)
{
	return value_at(t, f, AT_FRAME, addr, bytes) && *bytes >= 0 && *bytes < MAX_FRAME &&
	       *bytes % (int32_t)WORD == 0;
}

#define INLINED 2 /* the table of a function that says which inlined call code is of */

/* Is @addr in @f code of a function that was inlined? */
static bool is_inlined(const struct dwunw_pclntab *t, const struct dwunw_pcln_function *f,
		       uint64_t addr)
{
	uint32_t at = description(t) + INLINED * 4;
	int32_t call;

	if (get_u32(t->functions.at + f->at + AT_NR_TABLES) <= INLINED ||
	    t->functions.len - f->at < at + 4)
		return false;
	return value_at(t, f, at, addr, &call) && call >= 0;
}

bool dwunw_pclntab_line(const struct dwunw_pclntab *t, const struct dwunw_pcln_function *f,
			uint64_t addr, const char **file, uint32_t *line)
{
	uint64_t entry;
	int32_t number, at;

	if (is_inlined(t, f, addr) || !value_at(t, f, AT_LINE, addr, &number) || number <= 0 ||
	    !value_at(t, f, AT_FILE, addr, &at) || at < 0)
		return false;
	entry = ((uint64_t)get_u32(t->functions.at + f->at + AT_UNIT) + (uint32_t)at) * 4;
	if (entry + 4 > t->units.len)
		return false;
	*file = string_at(&t->files, get_u32(t->units.at + entry));
	*line = (uint32_t)number;
	return *file != NULL;
}
