/* state.h - what the code in a target goes by, once it is known: settings, and where code lies
 *
 * The preloaded library fills this in by itself.  Code that was put into a process that runs has it
 * from the recorder.
 */
#ifndef LIBPRELOAD_STATE_H
#define LIBPRELOAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/libpreload/ring.h"

/* What the header of the memory said when it was mapped: others may write to that. */
struct preload_settings {
	struct preload_sizes sizes;
	uint32_t stack_limit, clock;
	uint32_t follow, waits_at_fork, recorder_pid, recorder_fd, facts_fd, guard;
	uint64_t block_ns;
	struct preload_filter filter;
};

/* Addresses from start on, and before end. */
struct preload_range {
	uint64_t start, end;
};

/* What is found out once, before anything is recorded. */
struct preload_state {
	bool ready;	 /* the functions are known, and whether we record */
	bool guards;	 /* blocks have guard bytes, see guard.h */
	bool own_malloc; /* the program has a malloc of its own, which is called in place of ours */
	bool passed_by;	 /* the same, until that has called ours */
	bool calls_unseen; /* it calls functions of its allocator that are not wrapped */
	uint32_t pid;	   /* that is recorded */
	uint32_t program;  /* as preload_process.program */
	struct preload_process *process;
	const struct preload_facts *facts; /* of this process; NULL: none are to be believed */
	uint32_t facts_before; /* their changes when it began: those are not of this program */
	uint32_t confined;     /* enum preload_confined: what this process has forbidden itself */
	uint64_t main_thread;  /* where its control block is */
	struct preload_range loader, allocator, libc, own; /* code */
};

#endif
