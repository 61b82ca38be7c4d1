/* chunk_out.h - chunks onto a file, compressed and written by a thread of their own
 *
 * So the thread that fills chunks never waits for zstd or the disk, until some chunks are queued.
 */
#ifndef MLK_CHUNK_OUT_H
#define MLK_CHUNK_OUT_H

#include <stdbool.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"

struct mlk_chunk_out;

/* Start on @fd, where @bytes have been written.  On success *@out is released with
 * mlk_chunk_out_free().  Returns 0, -ENOMEM or -errno of pthread_create(3). */
int mlk_chunk_out_new(struct mlk_chunk_out **out, int fd, uint64_t bytes, int zstd_level);

/*
 * Queue a chunk: @h comes with salt, type, times, losses and number of records; or, if it is
 * @stored already, as another file has it, and nothing of @h changes but the sequence number.  The
 * payload's memory passes over, and *@payload is empty afterwards.  Waits while many are queued.
 * Returns 0, -EINVAL (longer than MLK_RAW_MAX), -ENOMEM (payload->failed), or the error of a chunk
 * before: after a failed write the file is cut back to its last whole chunk, and nothing follows.
 */
int mlk_chunk_out_put(struct mlk_chunk_out *o, const struct mlk_chunk *h, struct mlk_enc *payload,
		      bool stored);

/* Write a last chunk, after all that is queued, even if a write failed before: what it needs may be
 * there where a longer chunk found no room.  *@payload stays the caller's.  Returns 0 or -errno. */
int mlk_chunk_out_last(struct mlk_chunk_out *o, struct mlk_chunk *h, const struct mlk_enc *payload);

/* Have the thread call @fn with @arg between two chunks, and wait until it has. */
void mlk_chunk_out_call(struct mlk_chunk_out *o, void (*fn)(void *arg), void *arg);

/* The first error so far, or 0; @drained: wait before until all is on the file. */
int mlk_chunk_out_error(struct mlk_chunk_out *o, bool drained);

/* Write an INDEX chunk of all chunks since the last one, after all that is queued, and say where
 * the last one is in *@offset, 0: nowhere, an earlier call failed or memory is short.  @salt is
 * that of the file.  Returns 0 or -errno of write(2). */
int mlk_chunk_out_index(struct mlk_chunk_out *o, uint32_t salt, uint64_t *offset);

/* Is so much queued for another program, which reads from a pipe, that it should be given time?
 * mlk_chunk_out_put() may wait for it soon, as long as it pleases. */
bool mlk_chunk_out_is_behind(struct mlk_chunk_out *o);

/* From now on, where another program reads from a pipe, ask @gives_up(@arg) now and then while this
 * waits for it.  Once that says yes, all calls fail with -ECANCELED.  NULL: never ask. */
void mlk_chunk_out_patience(struct mlk_chunk_out *o, bool (*gives_up)(void *arg), void *arg);

/* Bytes on the file so far. */
uint64_t mlk_chunk_out_bytes(struct mlk_chunk_out *o);

/* End the thread, after what is queued, and release @o; NULL is allowed. */
void mlk_chunk_out_free(struct mlk_chunk_out *o);

/* Write the file header @h to @fd, an empty file.  Returns 0 or -errno of write(2). */
int mlk_header_write(int fd, const struct mlk_header *h);

#endif
