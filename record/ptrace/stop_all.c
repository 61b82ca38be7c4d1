/* stop_all.c - see stop_all.h */
#include "record/ptrace/stop_all.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/proc.h"

#define LIMIT_NS 250000000u
#define WAIT_NS	 20000 /* between two looks */

struct stop_thread {
	pid_t tid;
	bool stopped, gone;
	int sig; /* that is to be delivered when it goes on; 0: none */
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

/* Trace @tid, and ask it to stop. */
static int seize(struct stop_all *s, pid_t tid)
{
	if (grow_array(&s->v, s->nr, &s->room, sizeof(*s->v)))
		return -ENOMEM;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == ESRCH ? 0 : -errno;
	s->v[s->nr++] = (struct stop_thread){.tid = tid};
	s->most = tid > s->most ? tid : s->most;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return 0;
}

static int seize_new(struct stop_all *s, pid_t pid)
{
	DIR *dir = proc_threads(pid);
	size_t next = 0;
	int err = 0;
	pid_t tid;

	if (!dir)
		return -errno;
	while (!err && (tid = proc_next_thread(dir)) > 0)
		if (!is_known(s, tid, &next))
			err = seize(s, tid);
	closedir(dir);
	return err;
}

/* Has @t stopped or ended? */
static bool look(struct stop_thread *t)
{
	int status;
	pid_t got;

	if (t->stopped || t->gone)
		return true;
	got = waitpid(t->tid, &status, WNOHANG | __WALL | __WNOTHREAD);
	if (!got || (got < 0 && errno == EINTR))
		return false;
	t->stopped = got == t->tid && WIFSTOPPED(status);
	t->gone = !t->stopped;
	if (t->stopped && status >> 16 == 0)
		t->sig = WSTOPSIG(status); /* a signal came first */
	return true;
}

static int wait_for_all(struct stop_all *s, uint64_t until_ns)
{
	for (size_t i = 0; i < s->nr; i++)
		while (!look(&s->v[i])) {
			if (clock_now_ns() > until_ns)
				return -ETIMEDOUT;
			nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
		}
	return 0;
}

int stop_all_begin(struct stop_all *s, pid_t pid)
{
	uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	size_t before;
	int err;

	/* one that had not stopped yet may have started another */
	do {
		before = s->nr;
		err = seize_new(s, pid);
		if (!err)
			err = wait_for_all(s, until_ns);
	} while (!err && s->nr > before);
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

void stop_all_end(struct stop_all *s)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->v[i].stopped)
			ptrace(PTRACE_DETACH, s->v[i].tid, NULL, (void *)(intptr_t)s->v[i].sig);
	free(s->v);
	*s = (struct stop_all){0};
}
