/* exec_detect.h - does a process still run the program in which the library started?
 *
 * Nothing in a program sees an exec by a system call of its own.  But the kernel puts the start of
 * each program's stack elsewhere, and tells where that is.
 */
#ifndef RECORD_EXEC_DETECT_H
#define RECORD_EXEC_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/libpreload/ring.h"

#define PRELOAD_WATCH_NS 250000000u /* between looks, in which a new program's library comes up */

/* What was seen of a process; all zero: nothing yet. */
struct exec_detect {
	uint64_t start;		 /* of its program, as it is given to exec_detect_poll() */
	uint32_t program, execs; /* as in struct preload_process */
	bool expected;		 /* the library has reported an exec */
	bool strange;		 /* the program is another, and the library not in it so far */
};

/* The process of slot @s has something at the address @start that is elsewhere in each program; 0:
 * that is not known.  True: it has been running another program than the library reported for a
 * while.
 */
bool exec_detect_poll(struct exec_detect *w, const struct preload_process *s, uint64_t start);

#endif
