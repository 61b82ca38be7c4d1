/* stop_all.c - see stop_all.h */
#include "record/ptrace/stop_all.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/living.h"
#include "record/base/proc.h"

#define LIMIT_NS 250000000u
#define WAIT_NS	 200000	 /* between two looks, at most */
#define STUCK_NS 5000000 /* more than it takes to read from a disk */

struct stop_thread {
	pid_t tid;
	bool stopped, looked_at;
	int sig; /* that is to be delivered when it goes on; 0: none */
	/* CLOCK_MONOTONIC: since when it is traced, and when it was asked to stop */
	uint64_t traced_ns, asked_ns;
};

/* Lists are in the same order each time: most often it is the one at *@next. */
static bool is_known(const struct stop_all *s, pid_t tid, size_t *next)
{
	if (*next < s->nr && s->v[*next].tid == tid) {
		(*next)++;
		return true;
	}
	for (size_t i = 0; i < s->nr && tid <= s->most; i++)
		if (s->v[i].tid == tid) {
			*next = i + 1;
			return true;
		}
	return false;
}

/* Trace @tid, which runs on. */
static int seize(struct stop_all *s, pid_t tid)
{
	if (grow_array(&s->v, s->nr, &s->room, sizeof(*s->v)))
		return -ENOMEM;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		int err = errno;

		/* one that has just ended, as a main thread may have long ago, is forbidden, too */
		return err == ESRCH || !living_is(tid) ? 0 : -err;
	}
	s->v[s->nr++] = (struct stop_thread){.tid = tid, .traced_ns = clock_now_ns()};
	s->most = tid > s->most ? tid : s->most;
	return 0;
}

/* Have all that were stopped as many as there are?  The links of the list of threads are them and
 * two of its own: to ask for their number takes less than to read their names. */
static bool are_all(const struct stop_all *s, pid_t pid)
{
	char path[32];
	struct stat st;
	size_t nr = 0;

	for (size_t i = 0; i < s->nr; i++)
		nr += s->v[i].stopped;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return nr && !s->has_workers && !stat(path, &st) && st.st_nlink == nr + 2;
}

static int seize_new(struct stop_all *s, pid_t pid)
{
	DIR *dir;
	size_t next = 0;
	int err = 0;
	pid_t tid;

	if (are_all(s, pid))
		return 0;
	dir = proc_threads(pid);
	if (!dir)
		return -errno;
	while (!err && (tid = proc_next_thread(dir)) > 0)
		if (is_known(s, tid, &next))
			continue;
		else if (proc_is_worker(pid, tid))
			s->has_workers = true;
		else
			err = seize(s, tid);
	closedir(dir);
	return err;
}

/* How often thread @tid has got a processor, if it waits where nothing stops it; else, or where
 * that is not known, -1. */
static long long count_turns(pid_t pid, pid_t tid)
{
	long long turns = -1;
	char text[128];

	if (proc_is_uninterruptible(pid, tid) &&
	    proc_read(text, sizeof(text), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid))
		sscanf(text, "%*u %*u %lld", &turns);
	return turns;
}

static bool is_stuck(pid_t pid, pid_t tid)
{
	const long long turns = count_turns(pid, tid);

	if (turns < 0)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = STUCK_NS}, NULL);
	return count_turns(pid, tid) == turns;
}

/* One that waits for a child of vfork(2), or a device that is gone, would have all others stand in
 * vain. */
static int wait_for_stuck(const struct stop_all *s, pid_t pid)
{
	const uint64_t until_ns = clock_now_ns() + LIMIT_NS;

	for (size_t i = 0; i < s->nr; i++)
		while (is_stuck(pid, s->v[i].tid))
			if (clock_now_ns() > until_ns)
				return -ETIMEDOUT;
	return 0;
}

/* Has @t stopped or ended? */
static bool look(struct stop_thread *t)
{
	int status;
	pid_t got = waitpid(t->tid, &status, WNOHANG | __WALL | __WNOTHREAD);

	if (!got || (got < 0 && errno == EINTR))
		return false;
	t->stopped = got == t->tid && WIFSTOPPED(status);
	if (t->stopped && status >> 16 == 0)
		t->sig = WSTOPSIG(status); /* a signal came first */
	return true;
}

/* A stop sends SIGCHLD, for which this sleeps no longer than it has to; but a thread of ours that
 * does not block it may take it. */
static void wait_for_next(const sigset_t *child)
{
	sigtimedwait(child, NULL, &(struct timespec){.tv_nsec = WAIT_NS});
}

/* Wait until all from the number @first on have stopped or ended.  Each is visited as soon as it
 * stands, while others come to a stop. */
static int wait_for_all(struct stop_all *s, size_t first, uint64_t until_ns,
			stop_all_visit_fn *visit, void *ctx)
{
	size_t left = s->nr - first;
	sigset_t child;
	int err = 0;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (left && !err) {
		const size_t before = left;

		for (size_t i = first; i < s->nr && !err; i++) {
			struct stop_thread *t = &s->v[i];

			if (t->looked_at || !look(t))
				continue;
			t->looked_at = true;
			left--;
			if (t->stopped && visit)
				err = visit(ctx, s, i);
		}
		if (left == before && !err && clock_now_ns() > until_ns)
			return -ETIMEDOUT;
		if (left == before && !err)
			wait_for_next(&child);
	}
	return err;
}

/* Stop those from the number @first on, all at once. */
static int stop_from(struct stop_all *s, size_t first, uint64_t until_ns, stop_all_visit_fn *visit,
		     void *ctx)
{
	for (size_t i = first; i < s->nr; i++) {
		s->v[i].asked_ns = clock_now_ns();
		ptrace(PTRACE_INTERRUPT, s->v[i].tid, NULL, NULL);
	}
	return wait_for_all(s, first, until_ns, visit, ctx);
}

int stop_all_begin(struct stop_all *s, pid_t pid, stop_all_visit_fn *visit, void *ctx)
{
	size_t before = 0;
	uint64_t until_ns;
	int err;

	sigset_t child, mask;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &mask);
	/* To be traced takes as long as to be stopped, and stops nothing. */
	err = seize_new(s, pid);
	if (!err)
		err = wait_for_stuck(s, pid);
	until_ns = clock_now_ns() + LIMIT_NS;
	/* one that had not stopped yet may have started another */
	while (!err && s->nr > before) {
		err = stop_from(s, before, until_ns, visit, ctx);
		before = s->nr;
		if (!err)
			err = seize_new(s, pid);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return !err && !s->nr ? -ESRCH : err;
}

int stop_all_regs(const struct stop_all *s, size_t i, pid_t *tid, struct user_regs_struct *regs)
{
	struct iovec io = {.iov_base = regs, .iov_len = sizeof(*regs)};

	*tid = s->v[i].tid;
	if (!s->v[i].stopped)
		return -ESRCH;
	if (ptrace(PTRACE_GETREGSET, *tid, (void *)NT_PRSTATUS, &io))
		return -errno;
	return io.iov_len == sizeof(*regs) ? 0 : -EINVAL;
}

uint64_t stop_all_end(struct stop_all *s)
{
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < s->nr; i++) {
		const struct stop_thread *t = &s->v[i];
		/* one that got a signal stood as soon as it was traced */
		const uint64_t since_ns = t->sig ? t->traced_ns : t->asked_ns;
		uint64_t ns;

		if (!t->stopped)
			continue;
		ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->sig);
		ns = clock_now_ns() - since_ns;
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	free(s->v);
	*s = (struct stop_all){0};
	return longest_ns;
}
