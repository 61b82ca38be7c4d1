/* remote_thread.c - see remote_thread.h */
#include "record/inject/remote/remote_thread.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/inject/remote/remote_restart.h"

#define TEXT_SIZE 65536
#define LIMIT_NS  250000000u
#define WAIT_NS	  1000000 /* between two looks at threads that cannot be stopped */

/* How much a thread is disturbed. */
enum {
	RANK_SAME_AGAIN, /* it waits in a call that takes up where it was, whatever happens to us */
	RANK_RUNS,
	RANK_WAITS,
	RANK_NONE, /* it cannot be stopped */
};

/* The value of the line @name of @text; "": there is none. */
static const char *value_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : "";
}

static bool has_word(const char *line, const char *word)
{
	const char *at = strstr(line, word), *end = strchr(line, '\n');

	return at && (!end || at < end);
}

/* May its threads, of one of which /proc/PID/status is @text, execute calls for us? */
static int check_status(const char *text, const char **why)
{
	if (strtol(value_of(text, "\nTracerPid:"), NULL, 10)) {
		*why = "is traced by another process";
		return -EBUSY;
	}
	if (strtol(value_of(text, "\nSeccomp:"), NULL, 10)) {
		*why = "has a seccomp filter";
		return -ENOTSUP;
	}
	if (has_word(value_of(text, "\nx86_Thread_features:"), "shstk")) {
		*why = "has a shadow stack";
		return -ENOTSUP;
	}
	return 0;
}

static int rank_of(pid_t pid, pid_t tid, const char *text)
{
	const char *state = value_of(text, "\nState:");
	struct remote_call_seen seen;

	switch (state[strspn(state, "\t ")]) {
	case 'R':
		return RANK_RUNS;
	case 'S':
	case 'T':
		break;
	default: /* it waits uninterruptibly, or has ended */
		return RANK_NONE;
	}
	remote_call_look(&seen, pid, tid);
	return seen.known && remote_call_is_same_again(seen.nr, seen.args) ? RANK_SAME_AGAIN
									   : RANK_WAITS;
}

/* Put @tid where it belongs by its @rank; of too many the worst are left out. */
static void add(struct remote_threads *out, pid_t tid, int rank)
{
	size_t i = out->nr;

	if (i == REMOTE_THREADS_MOST && out->rank[--i] <= rank)
		return;
	for (; i > 0 && out->rank[i - 1] > rank; i--) {
		out->tid[i] = out->tid[i - 1];
		out->rank[i] = out->rank[i - 1];
	}
	out->tid[i] = tid;
	out->rank[i] = rank;
	out->nr += out->nr < REMOTE_THREADS_MOST;
}

/* All threads are examined, though not all are wanted. */
static int look(struct remote_threads *out, pid_t pid, char *text, const char **why)
{
	DIR *dir = proc_threads(pid);
	int err = dir ? 0 : errno == ENOENT ? -ESRCH : -errno;
	pid_t tid;

	out->nr = 0;
	while (!err && (tid = proc_next_thread(dir)) > 0) {
		int rank;

		if (!proc_read(text, TEXT_SIZE, "/proc/%d/task/%d/status", (int)pid, (int)tid))
			continue;
		err = check_status(text, why);
		rank = err || proc_is_worker(pid, tid) ? RANK_NONE : rank_of(pid, tid, text);
		if (rank != RANK_NONE)
			add(out, tid, rank);
	}
	if (dir)
		closedir(dir);
	return err;
}

static bool is_32_bit(pid_t pid)
{
	char head[EI_CLASS + 2];

	return proc_read(head, sizeof(head), "/proc/%d/exe", (int)pid) > EI_CLASS &&
	       head[EI_CLASS] == ELFCLASS32;
}

int remote_threads_choose(struct remote_threads *out, pid_t pid, const char **why)
{
	const uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	char *text = malloc(TEXT_SIZE);
	int err = text ? 0 : -ENOMEM;

	*why = "cannot be examined";
	if (!err && is_32_bit(pid)) {
		*why = "is a 32-bit process";
		err = -ENOTSUP;
	}
	while (!err) {
		err = look(out, pid, text, why);
		if (err || out->nr)
			break;
		if (clock_now_ns() > until_ns) {
			*why = "has no thread that can be stopped: each waits for a device, or "
			       "has ended";
			err = -ETIMEDOUT;
		}
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	}
	free(text);
	return err;
}
