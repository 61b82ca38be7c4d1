/* seize.c - see seize.h */
#include "record/ptrace/seize.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "record/module/trace_out.h"

#define SETTLE_NS 250000000u

/* Not to be killed with us: the kernel sets it free. */
static const uintptr_t follow_options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
					PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
					PTRACE_O_TRACESYSGOOD;

void seize_started(pid_t pid)
{
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)follow_options);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
}

static int seize(pid_t tid)
{
	return ptrace(PTRACE_SEIZE, tid, NULL, (void *)follow_options) ? -errno : 0;
}

/* The next thread that @dir, a directory task of /proc, has; 0 at its end. */
static pid_t next_thread(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			return tid;
	}
	return 0;
}

static DIR *open_threads(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

/* Trace the threads of @pid that are not traced yet.  Returns how many, or -errno. */
static int seize_threads(pid_t pid)
{
	int seized = 0, err = 0;
	pid_t tid;
	DIR *dir = open_threads(pid);

	if (!dir)
		return -errno;
	while (!err && (tid = next_thread(dir)) != 0) {
		int failed = seize(tid);

		if (!failed)
			seized++;
		else if (tid == pid)
			err = failed;
	}
	closedir(dir);
	return seized ? seized : err;
}

/* The stop that was requested, and no job control's? */
static bool is_ours(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

static void sleep_a_little(void)
{
	const struct timespec ts = {.tv_nsec = 50000};

	nanosleep(&ts, NULL);
}

/* Wait until @until_ns for the stop of @tid that was requested, and let it go on. */
static void settle(pid_t tid, uint64_t until_ns, seize_stop_fn *stopped, void *ctx)
{
	int status;
	pid_t got;

	while ((got = waitpid(tid, &status, WNOHANG | __WALL | __WNOTHREAD)) >= 0) {
		if (!got) {
			if (trace_out_now_ns() > until_ns)
				return;
			sleep_a_little();
			continue;
		}
		if (WIFSTOPPED(status) && is_ours(status)) {
			ptrace(PTRACE_CONT, tid, NULL, NULL);
			return;
		}
		stopped(ctx, tid, status);
		if (!WIFSTOPPED(status) || status >> 16 == PTRACE_EVENT_STOP)
			return; /* it has ended, or its shell has stopped it */
	}
}

/* No thread of @pid is where it was before it was traced: in the middle of a fork. */
static void settle_threads(pid_t pid, seize_stop_fn *stopped, void *ctx)
{
	uint64_t until_ns = trace_out_now_ns() + SETTLE_NS;
	DIR *dir = open_threads(pid);
	pid_t tid;

	if (!dir)
		return;
	while ((tid = next_thread(dir)) != 0)
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	rewinddir(dir);
	while ((tid = next_thread(dir)) != 0)
		settle(tid, until_ns, stopped, ctx);
	closedir(dir);
}

int seize_running(pid_t pid, seize_stop_fn *stopped, void *ctx)
{
	int n = seize_threads(pid), first = n;

	/* A thread started by one that was not traced yet is found by looking again. */
	for (int pass = 0; pass < 3 && n > 0; pass++)
		n = seize_threads(pid);
	if (first < 0)
		return first;
	settle_threads(pid, stopped, ctx);
	return 0;
}
