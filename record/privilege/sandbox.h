/* sandbox.h - what the recorder may do no more once its trace is open, whatever its user may: for
 * it parses what others wrote */
#ifndef RECORD_SANDBOX_H
#define RECORD_SANDBOX_H

struct mlk_writer;

/*
 * Forbid this thread, and those that it starts, by Landlock and for good: to open any file for
 * writing, to create, rename, remove or truncate one, to run programs; with newer kernels to
 * connect to the network or abstract sockets, and to send other processes signals.  What is open
 * stays as it is, and files can be read as before; but another process, also of this user, cannot
 * be looked into, traced or asked for its mappings any more: for that there is the helper.
 *
 * Returns 0, or -errno: -ENOSYS or -EOPNOTSUPP where the kernel has no Landlock (before 5.13, or
 * not turned on).
 */
int sandbox_enter(void);

/* The same for this thread and that of @writer.  Returns as sandbox_enter() for this thread. */
int sandbox_enter_both(struct mlk_writer *writer);

#endif
