/* as_owner.h - open files of /proc/PID as the user whose process it is
 *
 * The kernel lets those examine a process who are its user, or have CAP_SYS_PTRACE.  Root in a
 * container has the right to become any user, but not that capability.
 */
#ifndef RECORD_AS_OWNER_H
#define RECORD_AS_OWNER_H

#include <stddef.h>
#include <sys/types.h>

/* Open @path, of thread @task, by open(2) with @flags, as the only user and group that its process
 * runs as; this thread is whom it was before then.  Returns a descriptor, -EACCES: there is not one
 * such user, or it is us, or we may not become him; or -errno. */
int as_owner_open(pid_t task, const char *path, int flags);

/* As read(2) of @path, from its beginning: of some files the kernel asks then who we are. */
ssize_t as_owner_read(pid_t task, const char *path, void *to, size_t len);

#endif
