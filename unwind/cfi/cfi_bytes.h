/* cfi_bytes.h - read numbers from a piece of a section, never beyond its end */
#ifndef DWUNW_CFI_BYTES_H
#define DWUNW_CFI_BYTES_H

#include <dwarf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is left to read.  After a read beyond the end, or of a number that makes no sense, bad is
 * set, and stays; the value read is 0. */
struct dwunw_bytes {
	const uint8_t *at, *end;
	bool bad;
};

/* Ten bytes hold 64 bits; assemblers pad, but not without limit. */
#define DWUNW_MAX_LEB128 16

/* How many bytes are left to read. */
static inline size_t dwunw_bytes_left(const struct dwunw_bytes *b)
{
	return (size_t)(b->end - b->at);
}

/* Pass over @len bytes; returns the first of them, or NULL. */
static inline const uint8_t *dwunw_bytes_take(struct dwunw_bytes *b, uint64_t len)
{
	const uint8_t *at = b->at;

	if (len > dwunw_bytes_left(b)) {
		b->bad = true;
		b->at = b->end;
		return NULL;
	}
	b->at += len;
	return at;
}

/* A little-endian number of @size bytes, 1 to 8. */
static inline uint64_t dwunw_bytes_u(struct dwunw_bytes *b, size_t size)
{
	const uint8_t *at = dwunw_bytes_take(b, size);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, size);
	return value;
}

/* The signed number in the low @size bytes, 1 to 8, of @value. */
static inline uint64_t dwunw_sign_extend(uint64_t value, size_t size)
{
	unsigned int shift = (unsigned int)(64 - 8 * size);

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

/* The same as dwunw_bytes_u(), of a signed number. */
static inline uint64_t dwunw_bytes_s(struct dwunw_bytes *b, size_t size)
{
	return dwunw_sign_extend(dwunw_bytes_u(b, size), size);
}

/* The bits of a LEB128 number; *bits: how many there were. */
static inline uint64_t dwunw_bytes_leb(struct dwunw_bytes *b, unsigned int *bits, uint8_t *last)
{
	uint64_t value = 0;

	*bits = 0;
	*last = 0;
	for (int i = 0; i < DWUNW_MAX_LEB128 && b->at < b->end; i++) {
		*last = *b->at++;
		if (*bits < 64)
			value |= (uint64_t)(*last & 0x7f) << *bits;
		*bits += 7;
		if (!(*last & 0x80))
			return value;
	}
	b->bad = true;
	return 0;
}

/* An unsigned LEB128 number; bits beyond the 64th are lost. */
static inline uint64_t dwunw_bytes_uleb(struct dwunw_bytes *b)
{
	unsigned int bits;
	uint8_t last;

	if (b->at < b->end && *b->at < 0x80) /* as nearly all are */
		return *b->at++;
	return dwunw_bytes_leb(b, &bits, &last);
}

/* The same, signed. */
static inline uint64_t dwunw_bytes_sleb(struct dwunw_bytes *b)
{
	unsigned int bits;
	uint8_t last;
	uint64_t value = dwunw_bytes_leb(b, &bits, &last);

	return last & 0x40 && bits < 64 ? value | UINT64_MAX << bits : value;
}

/* Bytes of a number in the form that the low bits of @encoding (DW_EH_PE_*) name; 0 when that is
 * not fixed or not known. */
static inline size_t dwunw_encoded_size(uint8_t encoding)
{
	switch (encoding & 0x07) {
	case DW_EH_PE_udata2:
		return 2;
	case DW_EH_PE_udata4:
		return 4;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
		return 8;
	}
	return 0;
}

/* A number in the form that @encoding names, by itself: what it is relative to is not added. */
static inline uint64_t dwunw_bytes_encoded(struct dwunw_bytes *b, uint8_t encoding)
{
	size_t size = dwunw_encoded_size(encoding);

	switch (encoding & 0x0f) {
	case DW_EH_PE_uleb128:
		return dwunw_bytes_uleb(b);
	case DW_EH_PE_sleb128:
		return dwunw_bytes_sleb(b);
	}
	if (!size || encoding == DW_EH_PE_omit) {
		b->bad = true;
		return 0;
	}
	return encoding & DW_EH_PE_signed ? dwunw_bytes_s(b, size) : dwunw_bytes_u(b, size);
}

#endif
