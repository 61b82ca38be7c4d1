/* limits.h - how much memory a process may have that the recorder's code would take from it */
#ifndef RECORD_INJECT_LIMITS_H
#define RECORD_INJECT_LIMITS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"

/* What is to be mapped into a process. */
struct inject_needs {
	uint64_t bytes;			   /* of all */
	uint64_t own_bytes;		   /* of these, what is its own and can be written */
	const struct preload_sizes *rings; /* each thread uses one, sooner or later all of it */
};

/*
 * Would process @pid lack what is mapped, as its limits are?  Of what is left to it of its address
 * space and data (ulimit -v and -d) it is to keep a half; and in its control group there is to be
 * room for the rings of all of its threads.
 *
 * Returns 0, or -ENOMEM with the reason in @why, INJECT_WHY bytes.
 */
int inject_check_limits(pid_t pid, const struct inject_needs *needs, char *why);

#endif
