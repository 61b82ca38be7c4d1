/* address_history.h - which block held an address: of each process of a trace the last block that
 * did
 *
 * A child of fork has what its parent had then.
 */
#ifndef REPORT_ADDRESS_HISTORY_H
#define REPORT_ADDRESS_HISTORY_H

#include "report/live/live.h"

/* Of one address. */
struct address_history {
	uint64_t addr;
	struct holder *all; /* by number of process; past nr: none */
	size_t nr;
};

/* How a block came to its end. */
enum holder_end {
	HOLDER_LIVES,
	HOLDER_FREED,
	HOLDER_REALLOCATED,
	HOLDER_UNMAPPED,
	HOLDER_GONE, /* its process started another program */
};

/* A block that holds the address, or held it. */
struct holder {
	bool any; /* there was one, of which all below tells */
	struct live_block block;
	uint8_t func;	/* enum mlk_func */
	bool inherited; /* by fork: the allocation is an ancestor's */
	enum holder_end end;
	uint32_t end_tid; /* thread that ended it, */
	uint64_t end_ns;  /* at this time, CLOCK_MONOTONIC */
};

/* The holders of @addr.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int address_history_new(struct address_history **out, uint64_t addr);

/* @live has taken in @event, with @stack.  Returns 0 or -ENOMEM. */
int address_history_event(struct address_history *holders, struct live *live,
			  const struct mlk_event *event, uint32_t stack);

/* The last holder in process number @process of what live_nr_processes() counts. */
struct holder address_history_get(const struct address_history *holders, size_t process);

/* Release @holders; NULL is allowed. */
void address_history_free(struct address_history *holders);

#endif
