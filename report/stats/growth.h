/* growth.h - how much was outstanding of each stack over time, and how long its blocks lived
 *
 * Time is divided into equal slices, at most GROWTH_SLICES of them: when they do not suffice any
 * more, two become one.  So memory does not depend on the length of a trace.
 */
#ifndef REPORT_GROWTH_H
#define REPORT_GROWTH_H

#include "report/live/live.h"
#include "report/stats/growth_track.h"
#include "report/stats/replaced.h"

/* What is known of one stack. */
struct growth_stack {
	uint64_t bytes[GROWTH_SLICES]; /* outstanding at the end of each slice */
	uint64_t most[GROWTH_SLICES];  /* most that was outstanding within it */
	bool has_lifetime;	       /* blocks of it were freed */
	uint64_t lifetime_ns;	       /* about so long half of these lived: 7 % more or less */
	/* By the slice of their allocation, as they are in the trace, so in a sample not
	 * weighted: blocks, and those of them that are outstanding at the end. */
	uint32_t given[GROWTH_SLICES], kept[GROWTH_SLICES];
	uint64_t old_blocks; /* those freed at an age of a sixteenth of the recording or more */
	double old_frees, late_frees; /* the same, and from a quarter of it on, not weighted */
	uint64_t old_age_ns;	      /* so long half of these lived, as lifetime_ns */
	struct live_amount replaced;  /* outstanding in the place of older blocks: replaced.h */
	float replaced_then[GROWTH_SLICES]; /* bytes of it, for frees up to each slice's end */
	/* Outstanding blocks of which that is not said, and older blocks of unknown size that were
	 * freed, and that no stack is known to replace: they may be in the place of these. */
	uint64_t others, unsized;
};

/* Of all stacks; slices is set by growth_finish(), and the last of them may be cut. */
struct growth {
	uint64_t start_ns, width_ns;
	unsigned int doubled; /* so often the width was */
	uint64_t first_ns;    /* of the first change of what is outstanding; 0: there was none */
	size_t slices;
	struct growth_track sum;  /* of all stacks */
	struct growth_track *all; /* by number of stack */
	size_t nr, room;
	struct pool pool; /* of tracks */
	struct replaced replaced;
	uint64_t most_bytes;	      /* for tracks, and a growth_stack of each; 0: no limit */
	uint64_t taken;		      /* by what tracks point to */
	bool failed;		      /* memory was short: then nothing is kept */
	struct growth_thread *thread; /* NULL: none is used */
};

/* Nothing happened yet; time is counted from start_ns if that is set, else
 * from the first change.  *@out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int growth_new(struct growth **out);

/* For struct live_watch, with a struct growth as its arg. */
void growth_changed(void *growth, const struct live_change *change);

/* Have a thread do the work of growth_changed() from now on, until growth_finish(); where there
 * can be none, all is as without it. */
void growth_use_thread(struct growth *growth);

/* For the thread: take in what growth_changed() was told. */
void growth_take(struct growth *growth, const struct live_change *change);

/* Is what there is within most_bytes, with what is told of it in the end? */
bool growth_is_allowed(const struct growth *growth);

/* growth_take() is to come soon for @stack: have its figures brought near. */
void growth_expect(const struct growth *growth, uint32_t stack);

/* The replay of @live ended at the end of what was @chosen.  Beside those that @live tells of,
 * @unsized older blocks were freed, as far as is known.  Returns 0 or -ENOMEM. */
int growth_finish(struct growth *growth, const struct live *live, const struct chosen *chosen,
		  uint64_t unsized);

/* The first class of lifetimes that are at least 1 / @part of the recording. */
int growth_first_old(const struct growth *growth, uint64_t part);

/* Blocks of @track that were freed in the lifetimes of class @first or more. */
uint64_t growth_frees(const struct growth_track *track, int first);

/* After growth_finish(): what is known of the @nr stacks @numbers together; all zero if nothing. */
struct growth_stack growth_of(const struct growth *growth, const uint32_t *numbers, size_t nr);

/* After growth_finish(): the same of all stacks together, without a lifetime.  What was most of all
 * of them was there at one moment; the sum of what was most of each need not have been. */
struct growth_stack growth_of_all(const struct growth *growth);

/* Release @growth; NULL is allowed. */
void growth_free(struct growth *growth);

#endif
