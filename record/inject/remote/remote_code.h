/* remote_code.h - instructions of a process by which it can be made to execute system calls */
#ifndef RECORD_REMOTE_CODE_H
#define RECORD_REMOTE_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/target/maps.h"

/* Addresses in the process.  Each program has these bytes somewhere, if not as instructions of its
 * own; the end of signal handlers, which would be of use, too, is not in all static programs. */
struct remote_code {
	uint64_t call; /* syscall; ret */
	uint64_t pop;  /* pop %rax; ret */
};

/* Search the executable mappings @maps of process @pid, a thread of it, for both.  Returns 0,
 * -ENOMEM, -ENOTSUP: there are none, -ESRCH, or the -errno of open(2) of its memory. */
int remote_code_find(struct remote_code *code, pid_t pid, const struct maps *maps);

/* Are they still there?  @tid is a thread of the process. */
bool remote_code_is_there(const struct remote_code *code, pid_t tid);

#endif
