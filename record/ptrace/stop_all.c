/* stop_all.c - see stop_all.h */
#include "record/ptrace/stop_all.h"

#include <elf.h>
#include <errno.h>
#include <stdatomic.h>
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
#include "record/ptrace/alarm.h"
#include "record/ptrace/awake.h"
#include "record/ptrace/crew.h"

#define LIMIT_NS 250000000u
/* Others may have the processors that those need which are to stop.  That one of ours wakes up,
 * which comes before all, has the kernel choose anew. */
#define LATE_NS	 1000000
#define AGAIN_NS 60000
#define SHARE	 16	 /* threads, for which one more of ours is started */
#define STUCK_NS 5000000 /* more than it takes to read from a disk */

struct stop_thread {
	pid_t tid;
	bool stopped, looked_at;
	unsigned int by; /* which of the crew traces it */
	int sig;	 /* that is to be delivered when it goes on; 0: none */
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

static int add(struct stop_all *s, pid_t tid)
{
	if (grow_array(&s->v, s->nr, &s->room, sizeof(*s->v)))
		return -ENOMEM;
	s->v[s->nr] = (struct stop_thread){.tid = tid, .by = s->nr % crew_size(s->crew)};
	s->nr++;
	s->most = tid > s->most ? tid : s->most;
	return 0;
}

/* How many threads process @pid has; 0: that is not known.  The links of their list are them and
 * two of its own: to ask for their number takes less than to read their names. */
static size_t count_threads(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return !stat(path, &st) && st.st_nlink > 2 ? st.st_nlink - 2 : 0;
}

struct crew *stop_all_crew(pid_t pid)
{
	return crew_new(1 + (unsigned int)(count_threads(pid) / SHARE));
}

/* Have all stopped that there are? */
static bool are_all(struct stop_all *s, pid_t pid)
{
	s->stopped = 0;
	for (size_t i = 0; i < s->nr; i++)
		s->stopped += s->v[i].stopped;
	return s->stopped && !s->has_workers && count_threads(pid) == s->stopped;
}

/* Add those that are new. */
static int add_new(struct stop_all *s, pid_t pid)
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
			err = add(s, tid);
	closedir(dir);
	return err;
}

/* What the crew does: with those from the number @first on. */
struct work {
	struct stop_all *s;
	size_t first;
	uint64_t until_ns;
	stop_all_visit_fn *visit;
	void *ctx;
	_Atomic uint64_t longest_ns;
};

/* Trace those of @who, which run on. */
static int seize(void *arg, unsigned int who)
{
	const struct work *w = arg;

	for (size_t i = w->first; i < w->s->nr; i++) {
		struct stop_thread *t = &w->s->v[i];

		if (t->by != who)
			continue;
		t->traced_ns = clock_now_ns();
		if (!ptrace(PTRACE_SEIZE, t->tid, NULL, NULL))
			continue;
		/* one that has just ended, as a main thread may have long ago, is forbidden, too */
		if (errno != ESRCH && living_is(t->tid))
			return -errno;
		t->looked_at = true;
	}
	return 0;
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

/* Wait until @t has stopped or ended.  Returns 0, or -ETIMEDOUT: neither until @until_ns. */
static int wait_for(struct stop_thread *t, uint64_t until_ns)
{
	int status;
	pid_t got;

	while ((got = waitpid(t->tid, &status, __WALL | __WNOTHREAD)) < 0 && errno == EINTR)
		if (clock_now_ns() >= until_ns)
			return -ETIMEDOUT;
	t->looked_at = true;
	t->stopped = got == t->tid && WIFSTOPPED(status);
	if (t->stopped && status >> 16 == 0)
		t->sig = WSTOPSIG(status); /* a signal came first */
	return 0;
}

/* Wait for those of @who.  First for the @last one: they need this processor to come to a stop, and
 * when that one stands, most others do. */
static int wait_for_all(const struct work *w, unsigned int who, struct stop_thread *last)
{
	int err = last ? wait_for(last, w->until_ns) : 0;

	for (size_t i = w->first; i < w->s->nr && !err; i++)
		if (w->s->v[i].by == who && !w->s->v[i].looked_at)
			err = wait_for(&w->s->v[i], w->until_ns);
	return err;
}

/* Visit those of @who.  That is a turn of its own: who visits has a processor for itself, and
 * others need that to come to a stop. */
static int visit(void *arg, unsigned int who)
{
	const struct work *w = arg;
	int err = 0;

	for (size_t i = w->first; i < w->s->nr && !err; i++)
		if (w->s->v[i].by == who && w->s->v[i].stopped)
			err = w->visit(w->ctx, w->s, i, who);
	return err ? err : w->visit(w->ctx, w->s, w->s->nr, who);
}

/* Stop those of @who, all at once. */
static int stop(void *arg, unsigned int who)
{
	const struct work *w = arg;
	struct stop_thread *last = NULL;
	timer_t alarm;
	int err = alarm_begin(&alarm, clock_now_ns() + LATE_NS, AGAIN_NS);

	if (err)
		return err == -EAGAIN ? -ENOMEM : err;
	for (size_t i = w->first; i < w->s->nr; i++) {
		struct stop_thread *t = &w->s->v[i];

		if (t->by != who || t->looked_at)
			continue;
		t->asked_ns = clock_now_ns();
		ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
		last = t;
	}
	err = wait_for_all(w, who, last);
	alarm_end(alarm);
	return err;
}

int stop_all_begin(struct stop_all *s, pid_t pid, stop_all_visit_fn *look, void *ctx)
{
	struct work w = {.s = s, .visit = look, .ctx = ctx};
	int err;

	s->awake = awake_begin();
	/* To be traced takes as long as to be stopped, and stops nothing. */
	err = add_new(s, pid);
	if (!err)
		err = crew_do(s->crew, seize, &w);
	if (!err)
		err = wait_for_stuck(s, pid);
	w.until_ns = clock_now_ns() + LIMIT_NS;
	/* one that had not stopped yet may have started another */
	while (!err && s->nr > w.first) {
		if (w.first)
			err = crew_do(s->crew, seize, &w);
		if (!err)
			err = crew_do(s->crew, stop, &w);
		if (!err && look)
			err = crew_do(s->crew, visit, &w);
		w.first = s->nr;
		if (!err)
			err = add_new(s, pid);
	}
	return !err && !s->stopped ? -ESRCH : err;
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

/* Let those of @who go. */
static int let_go(void *arg, unsigned int who)
{
	struct work *w = arg;
	uint64_t longest_ns = 0, other_ns;

	for (size_t i = 0; i < w->s->nr; i++) {
		const struct stop_thread *t = &w->s->v[i];
		/* one that got a signal stood as soon as it was traced */
		const uint64_t since_ns = t->sig ? t->traced_ns : t->asked_ns;
		uint64_t ns;

		if (t->by != who || !t->stopped)
			continue;
		ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->sig);
		ns = clock_now_ns() - since_ns;
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	other_ns = w->longest_ns;
	while (longest_ns > other_ns &&
	       !atomic_compare_exchange_weak(&w->longest_ns, &other_ns, longest_ns))
		;
	return 0;
}

uint64_t stop_all_end(struct stop_all *s)
{
	struct work w = {.s = s};

	crew_do(s->crew, let_go, &w);
	awake_end(s->awake);
	free(s->v);
	*s = (struct stop_all){.crew = s->crew};
	return w.longest_ns;
}
