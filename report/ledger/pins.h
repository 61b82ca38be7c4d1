/* pins.h - pages that few live bytes keep in memory: whose these are */
#ifndef REPORT_PINS_H
#define REPORT_PINS_H

#include "report/ledger/ledger.h"

/* A page, as its live parts come, ascending; and sums by stack. */
struct pins {
	uint64_t page; /* its address; UINT64_MAX: none yet */
	uint64_t live; /* bytes of blocks in it */
	struct pins_part {
		uint32_t stack;
		uint64_t bytes;
	} * parts;
	size_t nr, room;
	struct ledger_pin *sums; /* by number of stack */
	size_t nr_sums;
	uint64_t pages, bytes; /* that are kept, and not in use */
};

/* Begin; stacks have numbers below @nr_stacks.  Returns 0 or -ENOMEM. */
int pins_begin(struct pins *pins, size_t nr_stacks);

/* [@start, @end) is part of a block of @stack, behind those before.  Returns 0 or -ENOMEM. */
int pins_add(struct pins *pins, uint64_t start, uint64_t end, uint32_t stack);

/* No more comes: give the sums to @ledger. */
void pins_finish(struct pins *pins, struct ledger *ledger);

/* Forget all. */
void pins_release(struct pins *pins);

#endif
