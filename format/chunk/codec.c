/* codec.c - little-endian integers, varints and strings, bounds-checked */
#include "format/chunk/codec.h"

#include <errno.h>
#include <stdlib.h>

void mlk_enc_release(struct mlk_enc *e)
{
	free(e->buf);
	memset(e, 0, sizeof(*e));
}

/* Room for @more bytes, or failed is set. */
static bool enc_reserve(struct mlk_enc *e, size_t more)
{
	size_t room = e->room ? e->room : 256;
	uint8_t *grown;

	if (e->failed)
		return false;
	if (more <= e->room - e->len)
		return true;
	while (room - e->len < more)
		room *= 2;
	grown = realloc(e->buf, room);
	if (!grown) {
		e->failed = true;
		return false;
	}
	e->buf = grown;
	e->room = room;
	return true;
}

void mlk_enc_bytes(struct mlk_enc *e, const void *bytes, size_t len)
{
	if (!len || !enc_reserve(e, len))
		return;
	memcpy(e->buf + e->len, bytes, len);
	e->len += len;
}

void mlk_enc_u32(struct mlk_enc *e, uint32_t value)
{
	uint8_t bytes[4];

	mlk_put_u32(bytes, value);
	mlk_enc_bytes(e, bytes, sizeof(bytes));
}

void mlk_enc_u64(struct mlk_enc *e, uint64_t value)
{
	uint8_t bytes[8];

	mlk_put_u64(bytes, value);
	mlk_enc_bytes(e, bytes, sizeof(bytes));
}

void mlk_enc_uvar_long(struct mlk_enc *e, uint64_t value)
{
	uint8_t bytes[10];
	size_t len = 0;

	while (value >= 0x80) {
		bytes[len++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	bytes[len++] = (uint8_t)value;
	mlk_enc_bytes(e, bytes, len);
}

void mlk_enc_str(struct mlk_enc *e, const char *s)
{
	size_t len = strlen(s);

	mlk_enc_uvar(e, len);
	mlk_enc_bytes(e, s, len);
}

bool mlk_str_too_long(const char *s)
{
	return s && strlen(s) > MLK_MAX_STRING;
}

void mlk_enc_id(struct mlk_enc *e, const struct mlk_id *id)
{
	mlk_enc_u8(e, id->len);
	mlk_enc_bytes(e, id->bytes, id->len);
}

void mlk_enc_columns(struct mlk_enc *e, const struct mlk_enc *columns, size_t nr)
{
	e->columns_at = e->len;
	mlk_enc_u8(e, (uint8_t)nr);
	for (size_t i = 0; i < nr; i++)
		mlk_enc_uvar(e, columns[i].len);
	for (size_t i = 0; i < nr; i++) {
		mlk_enc_bytes(e, columns[i].buf, columns[i].len);
		e->failed |= columns[i].failed;
	}
}

const uint8_t *mlk_dec_bytes(struct mlk_dec *d, uint64_t len)
{
	const uint8_t *bytes = d->at;

	if (d->bad || len > (uint64_t)(d->end - d->at)) {
		d->bad = true;
		return NULL;
	}
	d->at += len;
	return bytes;
}

uint32_t mlk_dec_u32(struct mlk_dec *d)
{
	const uint8_t *p = mlk_dec_bytes(d, 4);

	return p ? mlk_get_u32(p) : 0;
}

uint64_t mlk_dec_u64(struct mlk_dec *d)
{
	const uint8_t *p = mlk_dec_bytes(d, 8);

	return p ? mlk_get_u64(p) : 0;
}

/* The low seven bits of each byte of @bytes, put together. */
static uint64_t join_sevens(uint64_t bytes)
{
	bytes = (bytes & 0x007f007f007f007f) | (bytes & 0x7f007f007f007f00) >> 1;
	bytes = (bytes & 0x00003fff00003fff) | (bytes & 0x3fff00003fff0000) >> 2;
	return (bytes & 0x0fffffff) | (bytes & 0x0fffffff00000000) >> 4;
}

uint64_t mlk_dec_uvar_long(struct mlk_dec *d)
{
	uint64_t value = 0, bytes, ends;

	/* without a branch for each byte, which would often be predicted wrong */
	if (!d->bad && d->end - d->at >= 8) {
		bytes = mlk_get_u64(d->at);
		ends = ~bytes & 0x8080808080808080;
		if (ends) {
			d->at += __builtin_ctzll(ends) / 8 + 1;
			return join_sevens(bytes & (ends ^ (ends - 1)));
		}
	}

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = mlk_dec_u8(d);

		/* The tenth byte has one bit of the 64 left. */
		if (d->bad || (shift == 63 && byte > 1))
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	d->bad = true;
	return 0;
}

const char *mlk_dec_str(struct mlk_dec *d, size_t *len)
{
	*len = (size_t)mlk_dec_uvar_max(d, MLK_MAX_STRING);
	return (const char *)mlk_dec_bytes(d, *len);
}

void mlk_dec_id(struct mlk_dec *d, struct mlk_id *id)
{
	const uint8_t *bytes;

	memset(id, 0, sizeof(*id));
	id->len = mlk_dec_u8(d);
	if (id->len > MLK_MAX_ID) {
		d->bad = true;
		id->len = 0;
		return;
	}
	bytes = mlk_dec_bytes(d, id->len);
	if (bytes)
		memcpy(id->bytes, bytes, id->len);
}

uint64_t mlk_dec_columns(struct mlk_dec *d, struct mlk_dec *columns, size_t nr)
{
	return mlk_dec_columns_from(d, columns, nr, nr);
}

uint64_t mlk_dec_columns_from(struct mlk_dec *d, struct mlk_dec *columns, size_t least, size_t nr)
{
	uint64_t len[MLK_MAX_COLUMNS] = {0}, listed = mlk_dec_u8(d), others = 0;

	d->bad |= listed < least;
	for (uint64_t i = 0; i < listed && !d->bad; i++) {
		uint64_t bytes = mlk_dec_uvar(d);

		if (i < nr)
			len[i] = bytes;
		else if (__builtin_add_overflow(others, bytes, &others))
			others = UINT64_MAX;
	}
	for (size_t i = 0; i < nr && i < listed && !d->bad; i++) {
		const uint8_t *at = mlk_dec_bytes(d, len[i]);

		columns[i] = (struct mlk_dec){.at = at, .end = d->bad ? at : at + len[i]};
	}
	return others;
}
