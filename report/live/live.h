/* live.h - which blocks are live: match allocations with frees
 *
 * Events are taken in the order of the trace.  After live_finish() the totals add up:
 * allocated = freed + outstanding + implied + gone.
 *
 * A mapping is allocated as far as it is in use.  What is reserved becomes so when it is made
 * accessible.  What madvise gives back is freed; what is used again is allocated again.
 *
 * A child of fork begins with copies of its parent's blocks.  They are its parent's allocations,
 * not its own: it begins with none, and a free of what it did not allocate is one of an inherited
 * block.
 */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include <stdbool.h>

#include "format/trace.h"
#include "report/live/block_map.h"

struct live; /* opaque: the blocks of one trace */
struct sampling;

/* Sums of sizes from a damaged trace may wrap; the totals then still add up modulo 2^64. */
struct live_amount {
	uint64_t blocks;
	uint64_t bytes;
};

/* Add @more to @sum. */
static inline void live_amount_add(struct live_amount *sum, struct live_amount more)
{
	sum->blocks += more.blocks;
	sum->bytes += more.bytes;
}

/* The sums of a trace, or of a process of it. */
struct live_totals {
	struct live_amount allocated;
	struct live_amount
		freed; /* blocks whose allocation was seen; a failed realloc frees nothing */
	struct live_amount outstanding;
	struct live_amount implied; /* their address was allocated again: the free was not seen */
	struct live_amount gone;    /* alive when their process started another program */
	/* Pieces of mappings that need no memory now, see enum live_use.  What is reserved was not
	 * allocated yet; what was given back counts as freed. */
	struct live_amount reserved, given_back;
	uint64_t unknown_frees; /* frees of blocks that were not alive, */
	uint64_t freed_again; /* but for those of blocks that had been freed: live_expect_older() */
	/* Of these, the blocks whose address was allocated again: by the size that was. */
	struct live_amount older;
	uint64_t inherited_frees; /* the same in a child of fork: it had them from its parent */
};

/* What is outstanding, less the older blocks that were freed: of bytes, of those whose size is
 * known.  Below zero it wraps at 2^64. */
static inline struct live_amount live_net(const struct live_totals *totals)
{
	return (struct live_amount){totals->outstanding.blocks - totals->unknown_frees,
				    totals->outstanding.bytes - totals->older.bytes};
}

/* A process of the trace.  Of a number that came again, each is one of its own. */
struct live_process {
	uint32_t tgid;
	uint32_t parent; /* that forked it while recorded; 0: it was not forked, or not then */
	bool exited;
	bool execed;		   /* it began another program while recorded */
	struct live_totals totals; /* as live_totals(), of it alone */
};

/* The amounts above, by name.  LIVE_OLDER is on account of the block that took the address of an
 * older one. */
enum live_sum { LIVE_ALLOCATED, LIVE_FREED, LIVE_OUTSTANDING, LIVE_IMPLIED, LIVE_GONE, LIVE_OLDER };

/* A sum changes: @more is added to it, where less is what wraps at 2^64. */
struct live_change {
	enum live_sum sum;
	/* What is outstanding changes by as much: with LIVE_ALLOCATED it grows, else it shrinks. */
	bool outstanding;
	const struct live_block *block; /* on account of which */
	const struct mlk_event *event;	/* by which; NULL: by the end of the trace */
	struct live_amount more;
	const struct live_block *older; /* LIVE_OLDER: as live_each_older() has it; else NULL */
};

/* Callbacks for every change of the sums; all pointers are valid for the call. */
struct live_watch {
	void (*changed)(void *arg, const struct live_change *change);
	void *arg;
	bool in_order; /* what one event does to many blocks is told by their addresses, which takes
			  time; else in an order that is another one in each run */
};

/* By how much @change changes what is outstanding: nothing, or what is added to it. */
static inline struct live_amount live_change_of_outstanding(const struct live_change *change)
{
	struct live_amount more = change->more;

	if (change->sum != LIVE_OUTSTANDING && !change->outstanding)
		return (struct live_amount){0, 0};
	if (change->outstanding && change->sum != LIVE_ALLOCATED)
		more = (struct live_amount){0 - more.blocks, 0 - more.bytes};
	return more;
}

/* The block that @event, an MLK_ALLOC, allocates for @stack; it represents itself. */
struct live_block live_block_of(const struct mlk_event *event, uint32_t stack);

/* A match without any block.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int live_new(struct live **out);

/* From now on tell @watch, which is copied; there is one at most. */
void live_watch(struct live *live, const struct live_watch *watch);

/* The blocks of the events that follow were sampled as @sampling (copied) says: the sums are of
 * what they stand for.  Frees of unknown blocks are counted as they are. */
void live_set_sampling(struct live *live, const struct sampling *sampling);

/* There may be blocks from before the recording: from the next event on, tell their frees from
 * those of blocks that were freed already.  That takes some time and memory. */
void live_expect_older(struct live *live);

/*
 * Take in the next event of the trace; @stack is the number that live_each() gives back for the
 * block of an MLK_ALLOC, and ignored for other kinds.  Unknown kinds are ignored.  Returns 0 or
 * -ENOMEM.
 */
int live_event(struct live *live, const struct mlk_event *event, uint32_t stack);

/* The trace has ended: a realloc whose outcome was not seen counts as a free of the old block. */
void live_finish(struct live *live);

/* The sums so far, valid until live_free(). */
const struct live_totals *live_totals(const struct live *live);

/* Processes so far; their numbers go from 0, in the order of their first events. */
size_t live_nr_processes(const struct live *live);

/* What is known of process @number (below live_nr_processes()). */
struct live_process live_process(const struct live *live, size_t number);

/* Processes that began so far, those that were forgotten included. */
uint64_t live_nr_begun(const struct live *live);

/* A process that was forgotten. */
struct live_ended {
	uint32_t tgid;
	uint32_t number;  /* which another one may get from now on */
	uint64_t time_ns; /* of its end, CLOCK_MONOTONIC */
};

/*
 * Forget the processes that have ended, but for the last @keep of them, as soon as these are twice
 * as many: so one that forks for days takes no more memory.  What they have outstanding counts as
 * gone; the sums of each are lost.
 *
 * *@ended are those that were forgotten, in the order of their ids, *@nr of them; the caller frees
 * it.  Both are 0 on failure.  Returns 0 or -ENOMEM.
 */
int live_forget_ended(struct live *live, size_t keep, struct live_ended **ended, size_t *nr);

/* The number of the process that has the id @tgid now, which is added if it is new.  Returns 0 or
 * -ENOMEM. */
int live_process_number(struct live *live, uint32_t tgid, uint32_t *number);

/* Call @visit with @arg for each outstanding block, in no order; @block is valid for the call. */
void live_each(const struct live *live, void (*visit)(void *arg, const struct live_block *block),
	       void *arg);

/* The same for each older block that was freed, and whose size is not known.  Its time is that of
 * the free; what @block has but this, its address and process is of the block that the thread which
 * freed it had allocated last, if that was no other free's: .known tells. */
void live_each_older(const struct live *live,
		     void (*visit)(void *arg, const struct live_block *block), void *arg);

/* live_event() is to come soon with an event of process @tgid and the block at @addr: a hint, to
 * have memory brought near meanwhile. */
void live_expect(const struct live *live, uint32_t tgid, uint64_t addr);

/* The same for an event that frees, once what live_expect() asked for is near. */
void live_expect_free(const struct live *live, uint32_t tgid, uint64_t addr);

/* The block of that event, once that is near, too; NULL: none is known, or not without waiting. */
const struct live_block *live_expected(const struct live *live, uint32_t tgid, uint64_t addr);

/* Release @live; NULL is allowed. */
void live_free(struct live *live);

#endif
