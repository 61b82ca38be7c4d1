/* compress.c - see compress.h
 *
 * zstd codes each block of at most 128 KiB by the frequencies of its own bytes.  Columns differ in
 * these, so a block with bytes of two of them is longer than one of each.
 */
#include "format/chunk/compress.h"

#include <zstd_errors.h>

/* Less is not worth a block: its head and its frequencies take more than they spare. */
#define LEAST_BLOCK 2048u

ZSTD_CCtx *mlk_compressor_new(int level)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	if (zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level)))
		return zstd;
	ZSTD_freeCCtx(zstd);
	return NULL;
}

/* Compress what is left of @in, and do as @how says.  0 or an error of zstd's. */
static size_t compress_part(ZSTD_CCtx *zstd, ZSTD_outBuffer *out, ZSTD_inBuffer *in,
			    ZSTD_EndDirective how)
{
	size_t left, before;

	do {
		before = out->pos;
		left = ZSTD_compressStream2(zstd, out, in, how);
	} while (left && !ZSTD_isError(left) && out->pos > before);
	return left && !ZSTD_isError(left) ? (size_t)-ZSTD_error_dstSize_tooSmall : left;
}

/* Find the columns of @payload.  Returns how many it has. */
static size_t find_columns(const struct mlk_enc *payload, struct mlk_dec columns[MLK_MAX_COLUMNS])
{
	struct mlk_dec table = {.at = payload->buf + payload->columns_at,
				.end = payload->buf + payload->len};
	const size_t nr = payload->columns_at ? *table.at : 0;

	if (nr)
		mlk_dec_columns(&table, columns, nr);
	return table.bad ? 0 : nr;
}

size_t mlk_compress(ZSTD_CCtx *zstd, void *to, size_t room, const struct mlk_enc *payload)
{
	struct mlk_dec columns[MLK_MAX_COLUMNS];
	ZSTD_outBuffer out = {.dst = to, .size = room};
	ZSTD_inBuffer in = {.src = payload->buf};
	const size_t nr = find_columns(payload, columns);
	size_t err;

	if (!nr)
		return ZSTD_compress2(zstd, to, room, payload->buf, payload->len);
	ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
	err = ZSTD_CCtx_setPledgedSrcSize(zstd, payload->len);
	for (size_t i = 0; i < nr && !err; i++) {
		in.size = (size_t)(columns[i].end - payload->buf);
		if (in.size - in.pos >= LEAST_BLOCK)
			err = compress_part(zstd, &out, &in, ZSTD_e_flush);
	}
	in.size = payload->len;
	if (!err)
		err = compress_part(zstd, &out, &in, ZSTD_e_end);
	return err ? err : out.pos;
}
