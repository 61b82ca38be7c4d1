/* kernel_events.h - the kernel's blocks, into a trace
 *
 * The recorder goes through the table of live blocks each interval, and writes those that it had
 * not seen: they are the ALLOCs, with the time of their allocation.  Frees of such blocks are sent
 * by the programs.  Both are written in the order of their times, so what is between two looks is
 * kept until the second one is over.
 */
#ifndef RECORD_KERNEL_EVENTS_H
#define RECORD_KERNEL_EVENTS_H

#include "format/writer.h"
#include "record/kernel/kernel_stacks.h"
#include "record/kernel/kmem_probes.h"

/* All that is recorded has this process number, whichever process or interrupt it was for: a block
 * may be freed by another.  It is that of the kernel, as in ps. */
#define KERNEL_TGID 0

struct kernel_events; /* opaque */
struct kernel_origins;

/* Where blocks come from and go to, and which are wanted. */
struct kernel_events_opts {
	struct kmem_probes *probes; /* all borrowed until kernel_events_free() */
	struct kernel_stacks *stacks;
	const struct kallsyms *names;
	struct mlk_writer *writer;
	struct kernel_origins *origins;
	const char *cache; /* the only cache; NULL: all */
	uint64_t older_ns; /* a block must be so old to be written */
	bool all;	   /* each event is sent */
	bool user_stacks;  /* of the programs on whose behalf it is, too */
};

/* What became of the blocks, from the beginning on. */
struct kernel_events_sums {
	uint64_t allocs, frees;		   /* written */
	uint64_t slab_pages, slab_bytes;   /* left out, because their objects are told */
	uint64_t filtered, filtered_bytes; /* of other caches */
	uint64_t cut, unknown;		   /* stacks: incomplete, not known */
	uint64_t users;			   /* stacks that go on in user space */
	uint64_t cut_users;		   /* that do not, because the kernel's part is cut */
	uint64_t other_users; /* that do not: programs of 32 bits, or ones that are replaced */
	uint64_t too_large;   /* snapshots of mappings, which are not in the trace */
	uint64_t gone_users;  /* that do not: the process had ended, or ran another program */
	uint64_t unreadable;  /* programs and libraries */
	uint64_t wrong;	      /* stacks that were not what the rules said */
};

/* *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int kernel_events_new(struct kernel_events **out, const struct kernel_events_opts *opts);

/* Take what the programs have sent. Returns 0, -ENOMEM or the writer's error, as the next one. */
int kernel_events_consume(struct kernel_events *e);

/* What comes is new: take it more often than else. */
bool kernel_events_are_new(const struct kernel_events *e);

/* What waits to be written takes much memory: look soon. */
bool kernel_events_are_many(const struct kernel_events *e);

/* Look at the blocks that live now, and write what is due. */
int kernel_events_look(struct kernel_events *e);

/* The same of all that live now: this waits until they are old enough to be looked at. */
int kernel_events_look_at_all(struct kernel_events *e);

/* After that: up to which time all is written. */
uint64_t kernel_events_written_ns(const struct kernel_events *e);

/* After kernel_events_look_at_all(), of which all is in a trace that has ended: from now on they
 * are written to @w, to which nothing was.  Returns 0 or -ENOMEM. */
int kernel_events_begin_trace(struct kernel_events *e, struct mlk_writer *w);

/* Nothing is recorded any more: look for the last time, and write all that there is. */
int kernel_events_finish(struct kernel_events *e);

/* What was written, and what was not. */
const struct kernel_events_sums *kernel_events_sums(const struct kernel_events *e);

/* Release @e; NULL is allowed. */
void kernel_events_free(struct kernel_events *e);

#endif
