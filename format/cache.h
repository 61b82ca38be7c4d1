/* cache.h - a file with the unwound stacks of a trace, beside it: doc/trace-format.md section 8 */
#ifndef MLK_CACHE_H
#define MLK_CACHE_H

#include "format/reader.h"

#define MLK_CACHE_SUFFIX ".stacks" /* of its name, behind that of the trace */

/* What a cache is of.  Where both are what they were, its stacks are what unwinding would give. */
struct mlk_cache_key {
	uint64_t trace;	   /* a digest of the trace */
	uint64_t unwinder; /* and of all that unwinds it */
};

/* The first type of chunks with bytes of the writer's own, behind the stacks, and how many such
 * types there are: what each means is the writer's affair. */
#define MLK_CACHE_OWN	 64
#define MLK_CACHE_OWN_NR 2
#define MLK_CACHE_PIECE	 ((size_t)1 << 20) /* bytes in each of them but the last */

/* Does the file that is open as @fd, which stays open, begin as a cache does?  One that was cut may
 * have less than the whole beginning, and one that is damaged may be of no use. */
bool mlk_cache_check(int fd);

/* Remove the cache beside the trace @name in the folder @dir, if there is one and it is this
 * user's: the trace is not there any more, or has its stacks itself.  Other files with that name
 * stay. */
void mlk_cache_remove(int dir, const char *name);

/*
 * Open the cache that is open as @fd, which is the reader's from then on, also on failure.
 * mlk_reader_list() then tells its chunks: one UNWOUND chunk for each EVENTS chunk of the trace, in
 * their order, and then chunks of one type from MLK_CACHE_OWN on, or none.
 *
 * On success *@out is released with mlk_reader_free(), and *@key says what the cache is of; on
 * failure it is NULL.  Returns 0, -ENOMEM, -errno of fstat(2) or read(2), -EISDIR, -EINVAL (no
 * regular file), or MLK_E_MAGIC, MLK_E_VERSION or MLK_E_HEADER.
 */
int mlk_cache_open(struct mlk_reader **out, int fd, struct mlk_cache_key *key);

/* The stacks of an EVENTS chunk as they are to be written.  All zero is empty. */
struct mlk_cached {
	struct mlk_chunk header;
	uint8_t *bytes; /* its header's, to be filled in, and the stored payload */
	size_t room;
	bool ready; /* there are some */
};

struct mlk_cache_encoder; /* opaque: for one thread at a time */

/* Compress at @zstd_level (1 to 19).  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int mlk_cache_encoder_new(struct mlk_cache_encoder **out, int zstd_level);

/*
 * Encode @unwound into @cached: the stacks of the EVENTS chunk that mlk_reader_seek() led @trace
 * to, and that was read to its end; events_crc and first_ns are ignored.  cached->ready tells
 * whether it could be.  Returns 0, -ENOMEM, MLK_E_CORRUPT, or -EINVAL: it is too long for a chunk,
 * or a number in it does not fit the others.
 */
int mlk_cache_encode(struct mlk_cache_encoder *encoder, const struct mlk_reader *trace,
		     const struct mlk_unwound *unwound, struct mlk_cached *cached);

/* Release what @cached holds, and leave it empty. */
void mlk_cached_release(struct mlk_cached *cached);

/* Release @encoder; NULL is allowed. */
void mlk_cache_encoder_free(struct mlk_cache_encoder *encoder);

/* Write the header of a cache of @trace to @fd, an empty file.  Returns 0 or -errno of write(2). */
int mlk_cache_begin(int fd, const struct mlk_reader *trace, const struct mlk_cache_key *key);

/* Append @cached, the chunk number @seq from 0, to @fd.  Returns as mlk_cache_begin(): the file is
 * of no use after a failure. */
int mlk_cache_append(int fd, uint64_t seq, struct mlk_cached *cached);

/* Append to @fd, an empty file, the first @len bytes of the file that @cache reads.  Returns 0, or
 * -errno of read(2) or write(2). */
int mlk_cache_copy(int fd, const struct mlk_reader *cache, uint64_t len);

/* Append @len bytes at @bytes in chunks of MLK_CACHE_OWN + @kind, numbered from @seq, to a cache of
 * @trace in @fd.  Returns 0, -ENOMEM, or -errno of write(2). */
int mlk_cache_put_own(int fd, struct mlk_cache_encoder *encoder, const struct mlk_reader *trace,
		      uint64_t seq, unsigned int kind, const void *bytes, size_t len);

/* Point *@bytes at the *@len bytes that chunk @entry, of such a type, has, at most
 * MLK_CACHE_PIECE: valid until @cache is used again.  Returns 0, -ENOMEM, MLK_E_CORRUPT or -errno
 * of read(2). */
int mlk_cache_get_own(struct mlk_reader *cache, const struct mlk_entry *entry,
		      const uint8_t **bytes, size_t *len);

#endif
