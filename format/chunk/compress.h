/* compress.h - a chunk's payload as one zstd frame, whose blocks end where columns end */
#ifndef MLK_COMPRESS_H
#define MLK_COMPRESS_H

#include <zstd.h>

#include "format/chunk/codec.h"

/* What compresses at @level (1 to 19), for one thread at a time; ZSTD_freeCCtx() releases it.
 * NULL: out of memory. */
ZSTD_CCtx *mlk_compressor_new(int level);

/* Compress @payload to @to, where ZSTD_compressBound() bytes of it are enough room.  If it has
 * columns twice, as UNWOUND has, blocks end with the last ones.  Returns the bytes of the frame, or
 * what ZSTD_isError() tells. */
size_t mlk_compress(ZSTD_CCtx *zstd, void *to, size_t room, const struct mlk_enc *payload);

#endif
