/* overruns.h - blocks that were found written beyond their bounds, and whose they were
 *
 * Overruns of blocks with the same allocation stack, on the same side, are one site: all of it is
 * known of the first, the others are counted.
 */
#ifndef REPORT_OVERRUNS_H
#define REPORT_OVERRUNS_H

#include "format/reader.h"
#include "format/trace.h"
#include "report/base/hash_index.h"
#include "report/live/live_around.h"
#include "report/stats/stacks.h"
#include "report/trace/address_spaces.h"

#define OVERRUNS_NO_STACK UINT32_MAX /* in place of an id of the unwinder */

/* A block that was found written beyond its bounds. */
struct overrun {
	uint32_t tgid, tid; /* the thread that found it */
	uint64_t time_ns;   /* CLOCK_MONOTONIC, when */
	uint64_t addr;	    /* of the block */
	uint64_t size;	    /* of the block, UINT64_MAX: not known */
	uint8_t found;	    /* enum mlk_found */
	int64_t offset;	    /* of the first byte overwritten, from the block's beginning */
	uint32_t len, changed;
	const uint8_t *bytes;	   /* len of them, or NULL */
	uint32_t found_stack;	   /* the unwinder's number, or OVERRUNS_NO_STACK */
	bool known;		   /* the block's allocation is in the trace: */
	struct live_block block;   /* it */
	uint32_t alloc_stack;	   /* the unwinder's number, or OVERRUNS_NO_STACK */
	bool looked;		   /* around is filled in: */
	struct live_around around; /* the blocks then around it, but itself */
};

/* All with one allocation stack and on one side of their blocks. */
struct overrun_site {
	size_t first; /* number of an overrun */
	uint64_t nr;  /* of overruns */
};

/* Those of one trace; its sites are in the order of their first overruns. */
struct overruns {
	struct overrun **noted; /* as they were */
	struct overrun **all;	/* those that count, by time */
	size_t nr, nr_noted, room;
	size_t resolved; /* of all */
	size_t named;	 /* of noted */
	INTERN_OF(struct overrun_site) sites;
};

/* None yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int overruns_new(struct overruns **out);

/* In the first pass: note @overrun, which is copied.  Returns 0 or -ENOMEM. */
int overruns_note(struct overruns *overruns, const struct mlk_overrun *overrun);

/* All are noted; what was found later than @stop_ns, or, unless @pid is 0, in another process, does
 * not count.  Returns 0 or -ENOMEM. */
int overruns_sort(struct overruns *overruns, uint64_t stop_ns, uint32_t pid);

/* In the second: @live is about to take in an event of @time_ns; at the end, of UINT64_MAX.
 * Returns 0 or -ENOMEM. */
int overruns_until(struct overruns *overruns, uint64_t time_ns, const struct live *live,
		   const struct stacks *stacks);

/* Release @overruns; NULL is allowed. */
void overruns_free(struct overruns *overruns);

/* Unwind in @dw the stack that found each of @overruns, which are those of @trace, read once more
 * from its beginning.  Returns 0, -ENOMEM or -errno of read(2). */
int overruns_unwind_finders(struct overruns *overruns, struct mlk_reader *trace, struct dwunw *dw,
			    struct address_spaces *spaces);

#endif
