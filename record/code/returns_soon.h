/* returns_soon.h - jumps behind which a function only returns
 *
 * The kernel single-steps a `ret`, which costs ten times more than a jump that it emulates (see
 * probe_site.h).  The fast ways through an allocator are short: the last branch decides, the block
 * is in a register, and no register of the caller's was saved.  So the result is known at the
 * branch already, if it goes that way.
 */
#ifndef RECORD_RETURNS_SOON_H
#define RECORD_RETURNS_SOON_H

#include "record/code/returns.h"

/* An instruction that a function's code reaches. */
struct reached {
	uint64_t at; /* in the file */
	uint64_t to; /* where it may jump; 0: nowhere */
	uint8_t len; /* bytes; 0: it was not examined yet */
	bool ends;   /* the one behind it is not reached from here */
	enum { GOES_ON, RETURNS, JUMPS_TO_MEMSET } how;
};

/* All that a function reaches, in ascending order, and where it begins. */
struct reached_code {
	const struct returns_code *code;
	const struct reached *v;
	size_t nr;
	uint64_t entry;
	const size_t *jumps; /* the indices of those that may jump, in ascending order of `to` */
	size_t nr_jumps;
};

/*
 * Put into the @most sites at @out the jumps by one of which each way to the `ret` with the index
 * @ret passes.  Returns how many there are; 0: not every way has one that tells the result.
 */
size_t returns_soon(const struct reached_code *r, size_t ret, struct returns_site *out,
		    size_t most);

#endif
