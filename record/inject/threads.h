/* threads.h - what a target's threads tell of themselves: where their ids are, and whether they are
 * in the code that was put there */
#ifndef RECORD_INJECT_THREADS_H
#define RECORD_INJECT_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/inject/change.h"
#include "record/injected/injected.h"
#include "record/target/maps.h"

/* Set in @to what the code has to know of the threads of @pid and of its loader.  All threads stand
 * once, which is added to *@cost.  @mem is /proc/PID/mem.  Returns 0, or -errno with the
 * reason in @why, INJECT_WHY bytes. */
int inject_threads_describe(pid_t pid, int mem, const struct maps *maps, struct injected *to,
			    struct inject_cost *cost, char *why);

/* The code in a process, and whether a thread is in it. */
struct inject_inside {
	pid_t pid;
	bool own_numbers; /* as own_number_differs() */
	int mem;
	uint64_t base;		    /* of the image */
	struct injected_image head; /* as it is there */
	const struct injected *injected;
	uint8_t *text; /* the image's code, as it is there */
};

/* As inject_is_there_fn, of a struct inject_inside. */
bool inject_threads_inside(void *ctx, const struct inject_thread *t);

#endif
