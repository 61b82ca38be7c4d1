/* writer.h - write a trace to a file descriptor, chunk by chunk */
#ifndef MLK_WRITER_H
#define MLK_WRITER_H

#include <stdbool.h>

#include "format/code.h"
#include "format/code_names.h"
#include "format/heap.h"
#include "format/reach.h"
#include "format/regions.h"
#include "format/smaps.h"
#include "format/trace.h"

struct mlk_writer; /* opaque: one per trace, one thread at a time */

/*
 * Start a trace on @fd, an empty file open for writing, which is borrowed until mlk_writer_free().
 * The file header and the META chunk are on the file when this returns; what follows is
 * compressed, at @zstd_level (1 to 19), and written by a thread of the writer's own.
 *
 * On success *@out is a writer that the caller releases with mlk_writer_free(); on failure NULL.
 * Returns 0, -ENOMEM, -EINVAL (a string longer than MLK_MAX_STRING) or the -errno of write(2).
 */
int mlk_writer_open(struct mlk_writer **out, int fd, const struct mlk_meta *meta, int zstd_level);

/*
 * Each of these appends one thing and copies what it needs.  An event is kept until its chunk is
 * full or flushed; the others go to the file at once, as chunks of their own.
 *
 * They return 0, -ENOMEM, -EINVAL (more registers, stack bytes or string than trace.h allows) or
 * the -errno of a write(2), perhaps one for an earlier call.  After a failed write the file is cut
 * back to its last whole chunk, and every later call returns the same error.  MLK_E_CHANGED: the
 * file has not the length that it should have, and is left as it is.
 */
int mlk_writer_event(struct mlk_writer *w, const struct mlk_event *event);
int mlk_writer_maps(struct mlk_writer *w, const struct mlk_maps *maps);
int mlk_writer_threads(struct mlk_writer *w, const struct mlk_thread *threads, size_t nr);
int mlk_writer_origins(struct mlk_writer *w, const struct mlk_origin *origins, size_t nr);
/* What was counted of @nr threads up to the time of the first: theirs are the same. */
int mlk_writer_accounts(struct mlk_writer *w, const struct mlk_account *accounts, size_t nr);
/* Samples of one moment or of several, in their order, at most a few thousand. */
int mlk_writer_memory(struct mlk_writer *w, const struct mlk_memory *samples, size_t nr);
/* Marked moments, in their order; -EINVAL: a text is longer than MLK_MAX_STRING. */
int mlk_writer_marks(struct mlk_writer *w, const struct mlk_mark *marks, size_t nr);
/* A function of an interpreted program, before the first event that names it; -EINVAL: a name is
 * too long, or the lines are.  It is kept as an event is.  And an interpreter: a later one of the
 * process replaces it. */
int mlk_writer_code(struct mlk_writer *w, const struct mlk_code *code);
int mlk_writer_interpreter(struct mlk_writer *w, const struct mlk_interpreter *in);
/* Words of the pass that is under way at @time_ns; and that pass, behind its words. */
int mlk_writer_pointers(struct mlk_writer *w, const struct mlk_pointers *pointers,
			uint64_t time_ns);
int mlk_writer_pass(struct mlk_writer *w, const struct mlk_pass *pass);
/* A walk of an allocator, behind the last pass of its snapshot: @heap with any number of blocks,
 * and without flags.  -EINVAL: they are not in order. */
int mlk_writer_heap(struct mlk_writer *w, const struct mlk_heap *heap);
/* Where resident memory is: all mappings of a process, ascending, of one time. */
int mlk_writer_smaps(struct mlk_writer *w, const struct mlk_smaps *all, size_t nr);
/* All that a process has mapped.  What does not fit into a chunk is counted there as left out. */
int mlk_writer_regions(struct mlk_writer *w, const struct mlk_regions *regions);
/* Names of generated code: any number of them. */
int mlk_writer_code_names(struct mlk_writer *w, const struct mlk_code_names *names);
/* @image (@image_len bytes) is the whole image; it is cut into pieces here.  An empty one says that
 * the file could not be read.  @id must not be empty. */
int mlk_writer_module(struct mlk_writer *w, const struct mlk_id *id, const char *path,
		      const uint8_t *image, uint64_t image_len);

/*
 * What a thread was doing at some moment, which gave out no block: of @stack, an MLK_ALLOC, tgid,
 * tid, time, flags, registers and stack count.  @known: bit r says that regs[r] holds a value; the
 * others are 0.  It is in @stack's size in the trace.  If that is the stack pointer alone, it is a
 * piece of a stack, of which no first bytes are kept.  Flush between such and others.
 *
 * Stacks are kept until the next mlk_writer_flush_others().  Returns as the calls above.
 */
int mlk_writer_stack(struct mlk_writer *w, const struct mlk_event *stack, uint64_t known);

/*
 * What was found written beyond a block's bounds.  @overrun's event counts as that of
 * mlk_writer_stack() does, its address and size as well.  Where the mode is redacted the bytes are
 * left out.  Overruns are kept until the next mlk_writer_flush_others().  Returns as the calls
 * above.
 */
int mlk_writer_overrun(struct mlk_writer *w, const struct mlk_overrun *overrun);

/* Say what is executable from now on: @nr ascending mappings, of which those with MLK_PERM_X count.
 * It decides which words are kept of the stacks that follow, so it must not come later than they
 * do. */
void mlk_writer_set_code(struct mlk_writer *w, const struct mlk_mapping *mappings, size_t nr);

/* Set the losses so far; they are in the header of every chunk written from now on. */
void mlk_writer_set_losses(struct mlk_writer *w, const struct mlk_losses *losses);

/* Hand all that is kept so far, and the losses if they changed, to the thread that writes.  Returns
 * as the calls above. */
int mlk_writer_flush(struct mlk_writer *w);
/* The same without the events. */
int mlk_writer_flush_others(struct mlk_writer *w);

/*
 * The same of the events alone, and only if the first of them came @age_ns ago or longer.  @now_ns
 * is CLOCK_MONOTONIC in nanoseconds; an event counts as come when this was called before it, or at
 * the trace's beginning.  So a chunk that has just begun waits for more events: short ones compress
 * badly.
 */
int mlk_writer_flush_old(struct mlk_writer *w, uint64_t now_ns, uint64_t age_ns);

/* Flush, mark the end of the recording at @time_ns, and wait until all is on the file.  With
 * MLK_END_ERROR the mark is tried even if a write failed before.  Returns as the calls above. */
int mlk_writer_finish(struct mlk_writer *w, enum mlk_end reason, uint64_t time_ns);

/* Have the thread that writes call @fn with @arg, and wait until it has: for what a process sets
 * thread by thread. */
void mlk_writer_in_thread(struct mlk_writer *w, void (*fn)(void *arg), void *arg);

/* Is what reads the trace from a pipe so far behind that @w may soon wait for it? */
bool mlk_writer_is_behind(const struct mlk_writer *w);

/* While this waits for what reads the trace from a pipe, ask @gives_up(@arg) now and then.  Once it
 * says yes, all calls fail with -ECANCELED.  NULL, as at the beginning: never ask. */
void mlk_writer_patience(struct mlk_writer *w, bool (*gives_up)(void *arg), void *arg);

/* Bytes on the file so far. */
uint64_t mlk_writer_bytes(const struct mlk_writer *w);

/* Release @w without writing; NULL is allowed.  The file descriptor stays open. */
void mlk_writer_free(struct mlk_writer *w);

#endif
