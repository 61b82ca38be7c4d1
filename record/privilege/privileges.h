/* privileges.h - the capabilities that a recording needs, and when they are given up */
#ifndef RECORD_PRIVILEGES_H
#define RECORD_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"

/* Has this thread the effective capability @cap (CAP_... of <linux/capability.h>)? */
bool privileges_has(unsigned int cap);

/* Why ptrace(2) of another process is refused with -EPERM, in words: the system setting, or what is
 * most likely.  Static text. */
const char *privileges_no_ptrace(void);

/* What goes on after the probes are in place needs. */
struct privileges_later {
	bool perf;    /* perf events are made: probes after exec, or when a main thread has ended */
	bool preload; /* there are no probes, and none will be */
	bool started; /* the target is our child: signals are passed on to it */
	bool injects; /* code is taken out of a process, whose memory only its user may write */
	bool stops;   /* all of it is stopped for a moment, which is not to wait for others */
};

/* The capabilities that following an exec and reading libraries that are loaded later take, of
 * those that this thread has: bits 1 << CAP_... */
uint64_t privileges_needed(const struct privileges_later *later);

/* Give up, in this thread and in that of @writer, all capabilities but @caps; and for good the way
 * to get any back by exec. */
void privileges_reduce(uint64_t caps, struct mlk_writer *writer);

/* Of this thread, which is neither of those, keep the capabilities @caps (bits 1 << CAP_...), at
 * most. */
void privileges_keep_in_thread(uint64_t caps);

/*
 * Forbid this thread, and those that it starts, by Landlock and for good: to open any file for
 * writing, to create, rename, remove or truncate one, to run programs; with newer kernels to
 * connect to the network or abstract sockets, and to send other processes signals.  What is open
 * stays as it is, and files can be read as before; but another process, also of this user, cannot
 * be looked into, traced or asked for its mappings any more: for that there is the helper.
 *
 * In the folder that is open as @folder, and below, files can be made and removed all the same; -1:
 * nowhere.
 *
 * Returns 0, or -errno: -ENOSYS or -EOPNOTSUPP where the kernel has no Landlock (before 5.13, or
 * not turned on).
 */
int sandbox_enter(int folder);

/* The same for this thread and that of @writer.  Returns as sandbox_enter() for this thread. */
int sandbox_enter_both(struct mlk_writer *writer, int folder);

#endif
