/* crew.c - see crew.h */
#include "record/ptrace/crew.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/base/proc.h"

#define SPIN_NS 50000
/* For the first time, as others most often need less, and a timer is not for nothing; and then. */
#define FIRST_NS 1000000
#define SLEEP_NS 60000

struct member {
	struct crew *crew;
	pthread_t thread;
	pid_t tid;
	unsigned int who;
};

struct crew {
	unsigned int nr; /* without the caller */
	struct member members[CREW_MOST - 1];
	/* of the caller's */
	int policy, nice;
	struct sched_param priority;
	/* the work at hand: set before @turn goes up */
	crew_fn *what; /* NULL: end */
	void *arg;
	_Atomic unsigned int turn;
	_Atomic unsigned int ready, done; /* so many of them, counted through all turns */
	_Atomic int err;		  /* the first one */
};

/* Where others have all processors, that this thread wakes up, which comes before all, has the
 * kernel choose anew who gets this one: so those come to a stop sooner that are waited for. */
static void sleep_at(_Atomic unsigned int *count, unsigned int while_it_is, long most_ns)
{
	const struct timespec most = {.tv_nsec = most_ns};

	syscall(SYS_futex, count, FUTEX_WAIT_PRIVATE, while_it_is, &most, NULL, 0);
}

/* Have @count be one more. */
static void count(_Atomic unsigned int *count)
{
	++*count;
	syscall(SYS_futex, count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Wait until @count has come to @to.  Others may need this processor to come there. */
static void wait_until(_Atomic unsigned int *count, unsigned int to)
{
	long most_ns = FIRST_NS;
	unsigned int now;

	while ((int)((now = *count) - to) < 0) {
		sleep_at(count, now, most_ns);
		most_ns = SLEEP_NS;
	}
}

/* The same, where all others are about to count: for a sleep takes longer. */
static void meet(_Atomic unsigned int *at, unsigned int to)
{
	const uint64_t since_ns = clock_now_ns();

	count(at);
	while ((int)(*at - to) < 0 && clock_now_ns() - since_ns < SPIN_NS)
		__builtin_ia32_pause();
	wait_until(at, to);
}

static void note(struct crew *c, int err)
{
	int none = 0;

	if (err)
		atomic_compare_exchange_strong(&c->err, &none, err);
}

static void *be_member(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;

	if (sched_setscheduler(0, c->policy, &c->priority))
		setpriority(PRIO_PROCESS, 0, c->nice);
	m->tid = (pid_t)syscall(SYS_gettid);
	for (unsigned int turn = 1;; turn++) {
		wait_until(&c->turn, turn);
		if (!c->what)
			return NULL;
		meet(&c->ready, turn * (c->nr + 1));
		note(c, c->what(c->arg, m->who));
		count(&c->done);
	}
}

static unsigned int nr_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

struct crew *crew_new(unsigned int nr)
{
	const unsigned int processors = nr_processors();
	struct crew *c = NULL;

	nr = nr < CREW_MOST ? nr : CREW_MOST;
	nr = nr < processors ? nr : processors;
	if (nr > 1)
		c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->policy = sched_getscheduler(0);
	c->nice = getpriority(PRIO_PROCESS, 0);
	sched_getparam(0, &c->priority);
	for (unsigned int i = 0; i < nr - 1; i++) {
		struct member *m = &c->members[i];

		*m = (struct member){.crew = c, .who = i + 1};
		if (pthread_create(&m->thread, NULL, be_member, m))
			break;
		c->nr++;
	}
	return c;
}

unsigned int crew_size(const struct crew *c)
{
	return c ? c->nr + 1 : 1;
}

int crew_do(struct crew *c, crew_fn *what, void *arg)
{
	if (!c)
		return what(arg, 0);
	c->what = what;
	c->arg = arg;
	c->err = 0;
	count(&c->turn);
	meet(&c->ready, c->turn * (c->nr + 1));
	note(c, what(arg, 0));
	wait_until(&c->done, c->turn * c->nr);
	return c->err;
}

void crew_free(struct crew *c)
{
	if (!c)
		return;
	c->what = NULL;
	count(&c->turn);
	for (unsigned int i = 0; i < c->nr; i++) {
		pthread_join(c->members[i].thread, NULL);
		proc_wait_for_end(c->members[i].tid);
	}
	free(c);
}
