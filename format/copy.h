/* copy.h - copy a trace, and put beside its events what became of their stacks */
#ifndef MLK_COPY_H
#define MLK_COPY_H

#include "format/reader.h"
#include "format/summary.h"

struct mlk_copy; /* opaque: one thread at a time */

/* What of a trace is not copied. */
enum mlk_copy_drops {
	MLK_COPY_ALL = 0,
	/* Registers and stacks: chunks of events are left out; in their place there are those of
	 * mlk_copy_summary(), */
	MLK_COPY_DROP_RAW,
	/* and modules, in whose place there are those of mlk_copy_module(). */
	MLK_COPY_DROP_MODULES,
};

/*
 * Begin to copy the trace of @from, which must outlive the copy and may be used meanwhile, to @fd,
 * an empty file open for writing that is borrowed until mlk_copy_free().  What is new is compressed
 * at @zstd_level (1 to 19), and what @drops says is left out.  On success *@out is released with
 * mlk_copy_free(); on failure it is NULL.  Returns 0, -ENOMEM or -errno of a system call.
 */
int mlk_copy_new(struct mlk_copy **out, const struct mlk_reader *from, int fd, int zstd_level,
		 enum mlk_copy_drops drops);

/*
 * Copy all chunks before the one at @offset of the original, except for what says where its chunks
 * are and how their stacks were unwound.  Returns 0, -ENOMEM, -errno of read(2) or write(2), or
 * MLK_E_CORRUPT: a chunk is damaged, or not where it can be.
 */
int mlk_copy_until(struct mlk_copy *copy, uint64_t offset);

/* Put @unwound before the chunk that is the next, which it is about: its events_crc is ignored.
 * Returns as mlk_copy_until(), -EINVAL also where a number in it does not fit the others, or when
 * it is too long for a chunk: then nothing was put there. */
int mlk_copy_unwound(struct mlk_copy *copy, const struct mlk_unwound *unwound);

/* Write a chunk of the events @summary, the stacks of whose ALLOCs are in @unwound, which has no
 * numbers of ALLOCs itself.  Returns 0, -ENOMEM, -errno of write(2), or -EINVAL: it is too long for
 * a chunk, or a number does not fit the others. */
int mlk_copy_summary(struct mlk_copy *copy, const struct mlk_summary *summary,
		     const struct mlk_unwound *unwound);

/* Write chunks of @module, whose piece is the whole image.  Returns 0, -ENOMEM, -errno of write(2),
 * or -EINVAL: a trace has no such modules. */
int mlk_copy_module(struct mlk_copy *copy, const struct mlk_module *module);

/* Copy the rest, behind which there must be nothing, and wait until all is on the file.  Returns as
 * mlk_copy_until(). */
int mlk_copy_finish(struct mlk_copy *copy);

/*
 * Copy the rest of a trace that may still be written, as far as its chunks are whole.  If it has no
 * END, the copy gets one with MLK_END_COPIED, at the latest time in it.  Returns as
 * mlk_copy_until(), MLK_E_CORRUPT also where a chunk is missing.
 */
int mlk_copy_so_far(struct mlk_copy *copy);

/* Bytes on the file so far. */
uint64_t mlk_copy_bytes(const struct mlk_copy *copy);

/* Release @copy; NULL is allowed.  The file descriptor stays open. */
void mlk_copy_free(struct mlk_copy *copy);

#endif
