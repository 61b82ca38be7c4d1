/* remote_thread.h - which thread of a process may execute calls for us, if any */
#ifndef RECORD_REMOTE_THREAD_H
#define RECORD_REMOTE_THREAD_H

#include <stddef.h>
#include <sys/types.h>

#define REMOTE_THREADS_MOST 64

/* Threads of a process, those that are disturbed least first. */
struct remote_threads {
	pid_t tid[REMOTE_THREADS_MOST];
	int rank[REMOTE_THREADS_MOST]; /* ascending */
	size_t nr;
};

/*
 * Choose threads of @pid that live and that can be stopped.
 *
 * Returns 0; or, and then *@why is static text that reads behind "it": -ENOTSUP, this is no process
 * to have calls executed in; -EBUSY, another process traces it; -ETIMEDOUT, none of them could be
 * stopped for a quarter of a second; -ESRCH, or that of opendir(3).
 */
int remote_threads_choose(struct remote_threads *out, pid_t pid, const char **why);

#endif
