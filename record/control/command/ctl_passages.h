/* ctl_passages.h - where operator new calls what allocates for it, in a process that runs */
#ifndef RECORD_CTL_PASSAGES_H
#define RECORD_CTL_PASSAGES_H

#include <stdint.h>
#include <sys/types.h>

/* Calls that return to [start, start + size) are made by a function that allocates for its own
 * caller; that function's return address is @up bytes above the stack pointer there. */
struct ctl_passage {
	uint64_t start, size, up;
};

#define CTL_MAX_PASSAGES 16

/* Those of all operators new of process @pid, into the CTL_MAX_PASSAGES @passages.  Of an operator
 * of which it is not known, or for which there is no room, one line is logged.  Returns how many
 * there are, or -errno: the process cannot be looked at. */
int ctl_passages_find(pid_t pid, struct ctl_passage *passages);

#endif
