/* codec.h - the primitives of doc/trace-format.md section 1: little-endian integers, varints,
 * strings
 *
 * An encoder grows and remembers that memory ran out; a decoder never reads past its end and
 * remembers that it was asked to.  So callers check once, at the end of a record.
 */
#ifndef MLK_CODEC_H
#define MLK_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "array.h"
#include "format/trace.h"

/* Bytes being made; all zero: none yet. */
struct mlk_enc {
	uint8_t *buf;
	size_t len, room;
	size_t columns_at; /* where the table of the last columns begins; 0: there are none */
	bool failed;	   /* out of memory: the content is incomplete */
};

/* Free the bytes; then there are none. */
void mlk_enc_release(struct mlk_enc *e);
/* Append bytes, an integer of a fixed width, one of as many bytes as it needs, a string with its
 * length, an id.  What follows a failure is left out. */
void mlk_enc_bytes(struct mlk_enc *e, const void *bytes, size_t len);
void mlk_enc_u64(struct mlk_enc *e, uint64_t value);
void mlk_enc_u32(struct mlk_enc *e, uint32_t value);
void mlk_enc_uvar_long(struct mlk_enc *e, uint64_t value); /* mlk_enc_uvar() */
void mlk_enc_str(struct mlk_enc *e, const char *s);
void mlk_enc_id(struct mlk_enc *e, const struct mlk_id *id);

/* Columns: their number, the length of each, and then the bytes of each; behind something else. */
void mlk_enc_columns(struct mlk_enc *e, const struct mlk_enc *columns, size_t nr);

/* Longer than MLK_MAX_STRING?  NULL is not. */
bool mlk_str_too_long(const char *s);

/* Bytes being read. */
struct mlk_dec {
	const uint8_t *at, *end;
	bool bad; /* asked for more than there is, or for something that cannot be */
};

/* Read what the functions above append; 0 if that is bad. */
uint64_t mlk_dec_u64(struct mlk_dec *d);
uint32_t mlk_dec_u32(struct mlk_dec *d);
uint64_t mlk_dec_uvar_long(struct mlk_dec *d); /* mlk_dec_uvar(), of more than one byte */
/* @len bytes, borrowed from the decoder's buffer; NULL when there are not so many. */
const uint8_t *mlk_dec_bytes(struct mlk_dec *d, uint64_t len);
/* A string, borrowed and not NUL-terminated; its length in *len. */
const char *mlk_dec_str(struct mlk_dec *d, size_t *len);
void mlk_dec_id(struct mlk_dec *d, struct mlk_id *id);

#define MLK_MAX_COLUMNS 32

/* The first @nr columns, at most MLK_MAX_COLUMNS; that there are less is bad.  Returns the bytes of
 * those of a later version, which follow; UINT64_MAX if these are more than can be. */
uint64_t mlk_dec_columns(struct mlk_dec *d, struct mlk_dec *columns, size_t nr);

/* The same where only the first @least must be there; what is not stays as it was. */
uint64_t mlk_dec_columns_from(struct mlk_dec *d, struct mlk_dec *columns, size_t least, size_t nr);

/* Write a little-endian integer to memory, of 16 bits. */
static inline void mlk_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

/* Of 32 bits. */
static inline void mlk_put_u32(uint8_t *p, uint32_t v)
{
	mlk_put_u16(p, (uint16_t)v);
	mlk_put_u16(p + 2, (uint16_t)(v >> 16));
}

/* Of 64 bits. */
static inline void mlk_put_u64(uint8_t *p, uint64_t v)
{
	mlk_put_u32(p, (uint32_t)v);
	mlk_put_u32(p + 4, (uint32_t)(v >> 32));
}

/* The same the other way. */
static inline uint16_t mlk_get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* Of 32 bits. */
static inline uint32_t mlk_get_u32(const uint8_t *p)
{
	return mlk_get_u16(p) | (uint32_t)mlk_get_u16(p + 2) << 16;
}

/* Of 64 bits. */
static inline uint64_t mlk_get_u64(const uint8_t *p)
{
	return mlk_get_u32(p) | (uint64_t)mlk_get_u32(p + 4) << 32;
}

/* A byte.  This and what follows is the most frequent of all, some for each event: so not as calls.
 */
static inline void mlk_enc_u8(struct mlk_enc *e, uint8_t value)
{
	if (e->len < e->room)
		e->buf[e->len++] = value;
	else
		mlk_enc_bytes(e, &value, 1);
}

/* An integer in as few bytes as it needs, seven bits in each. */
static inline void mlk_enc_uvar(struct mlk_enc *e, uint64_t value)
{
	if (value < 0x80)
		mlk_enc_u8(e, (uint8_t)value);
	else
		mlk_enc_uvar_long(e, value);
}

/* The difference @value - @base, as an svar. */
static inline void mlk_enc_delta(struct mlk_enc *e, uint64_t value, uint64_t base)
{
	uint64_t d = value - base;

	mlk_enc_uvar(e, d << 1 ^ (d >> 63 ? UINT64_MAX : 0));
}

/* What mlk_enc_u8() appended; 0 if that is bad. */
static inline uint8_t mlk_dec_u8(struct mlk_dec *d)
{
	if (!d->bad && d->at < d->end)
		return *d->at++;
	d->bad = true;
	return 0;
}

/* What mlk_enc_uvar() appended. */
static inline uint64_t mlk_dec_uvar(struct mlk_dec *d)
{
	if (!d->bad && d->at < d->end && *d->at < 0x80)
		return *d->at++;
	return mlk_dec_uvar_long(d);
}

/* A uvar that is at most @max; a greater one is bad, and 0. */
static inline uint64_t mlk_dec_uvar_max(struct mlk_dec *d, uint64_t max)
{
	uint64_t value = mlk_dec_uvar(d);

	if (value <= max)
		return value;
	d->bad = true;
	return 0;
}

/* An integer of 16 bits. */
static inline uint16_t mlk_dec_u16(struct mlk_dec *d)
{
	const uint8_t *p = d->at;

	if (d->bad || d->end - p < 2) {
		d->bad = true;
		return 0;
	}
	d->at += 2;
	return mlk_get_u16(p);
}

/* What mlk_enc_delta() appended, with the same @base. */
static inline uint64_t mlk_dec_delta(struct mlk_dec *d, uint64_t base)
{
	uint64_t v = mlk_dec_uvar(d);

	return base + (v >> 1 ^ (v & 1 ? UINT64_MAX : 0));
}

#endif
