/* remote_check.h - whether a thread that has stopped may execute calls, and where it goes on */
#ifndef RECORD_REMOTE_CHECK_H
#define RECORD_REMOTE_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "record/inject/remote/remote_code.h"
#include "record/target/maps.h"

/* Does thread @tid, which is stopped by ptrace(2) with @regs, execute 64-bit code, and was its
 * system call, if it has not come to its end, one of that? */
bool remote_is_64_bit(pid_t tid, const struct user_regs_struct *regs);

/* May thread @tid, which is stopped by ptrace(2) with @regs, be used, by @code?  @maps: its
 * mappings.  Returns 0; or -ENOTSUP, and *@why, static text that reads behind "it". */
int remote_check(pid_t tid, const struct user_regs_struct *regs, const struct remote_code *code,
		 const struct maps *maps, const char **why);

/* A thread in the middle of a restartable sequence (rseq(2)) that lost its processor, as it did by
 * our stop, goes on where that is handled.  The kernel does this only while its pc is in there.
 * Returns 0; or -EAGAIN: it may be in one, for it is in no system call, and kernels before 5.13 do
 * not tell. */
int remote_leave_sequence(pid_t tid, struct user_regs_struct *regs);

/* The signals to be blocked while thread @tid, which is stopped by ptrace(2), executes calls: all;
 * but before Linux 6.4 not SIGSYS.  There nothing tells whether its calls are dispatched to itself,
 * and by a signal that was blocked the kernel would take its handler away. */
uint64_t remote_blocked(pid_t tid);

#endif
