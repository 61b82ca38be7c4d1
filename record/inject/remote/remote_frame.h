/* remote_frame.h - a signal frame, by which a thread finds back to where it was */
#ifndef RECORD_REMOTE_FRAME_H
#define RECORD_REMOTE_FRAME_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "record/inject/remote/remote_code.h"

/*
 * Write a frame below the red zone of thread @tid, which is stopped by ptrace(2): as of a signal
 * that was met at @regs, while the signals @mask were blocked.  The extended registers are those
 * that the thread has now; its alternate stack stays what it is.
 *
 * *@at is the address of three words before the frame.  A ret with this stack pointer goes by @code
 * to sigreturn(2), and ends in @regs.  Returns 0; -ENOTSUP, the processor has no XSAVE; -EFAULT,
 * the stack has no room; or -errno.
 */
int remote_frame_write(pid_t tid, const struct user_regs_struct *regs, uint64_t mask,
		       const struct remote_code *code, uint64_t *at);

/* Write the @len bytes at @bytes to @at in the memory of thread @tid.  Returns 0 or -errno. */
int remote_write(pid_t tid, uint64_t at, const void *bytes, size_t len);

#endif
