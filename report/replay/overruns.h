/* overruns.h - blocks that were found written beyond their bounds, and whose they were
 *
 * Overruns of blocks with the same allocation stack, on the same side, are one site: all of it is
 * known of the first, the others are counted.
 */
#ifndef REPORT_OVERRUNS_H
#define REPORT_OVERRUNS_H

#include "format/trace.h"
#include "report/live/live_around.h"
#include "report/stats/stacks.h"

struct overruns; /* opaque: those of one trace */

#define OVERRUNS_NO_STACK UINT32_MAX

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

/* In the third, in the order of the first: @id is the unwinder's number for the stack that found
 * the next one. */
void overruns_found_by(struct overruns *overruns, uint32_t id);

/* How many count, and number @i of them in the order of time. */
size_t overruns_nr(const struct overruns *overruns);
const struct overrun *overruns_get(const struct overruns *overruns, size_t i);

/* The sites, in the order of their first overruns. */
size_t overruns_nr_sites(const struct overruns *overruns);
const struct overrun_site *overruns_site(const struct overruns *overruns, size_t i);

/* Release @overruns; NULL is allowed. */
void overruns_free(struct overruns *overruns);

#endif
