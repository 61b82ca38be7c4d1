/* memory_walker.c - see memory_walker.h */
#include "record/target/memory_walker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/privilege/privileges.h"
#include "record/target/memory_read.h"

struct memory_walker {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	int fd;	       /* to be read; -1: none */
	bool done;     /* @walk is what came of it */
	bool released; /* nobody asks any more: the thread frees this */
	struct memory_walk walk;
};

static void give_up_privileges(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "mleak-walker", 0, 0, 0);
	privileges_keep_in_thread(0);
	sandbox_enter(-1);
}

static void walk_pages(int fd, struct memory_walk *walk)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	walk->sample = (struct mlk_memory){0};
	/* That it is refused costs nothing, and is told by the values that are missing. */
	(void)memory_read_pages(fd, &walk->sample);
	walk->sample.time_ns = clock_now_ns();
	walk->took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

static void release_walker(struct memory_walker *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void *serve_walks(void *arg)
{
	struct memory_walker *w = arg;

	give_up_privileges();
	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct memory_walk walk;
		int fd;

		while (w->fd < 0 && !w->released)
			pthread_cond_wait(&w->changed, &w->lock);
		fd = w->fd;
		if (fd < 0)
			break;
		pthread_mutex_unlock(&w->lock);
		walk_pages(fd, &walk);
		pthread_mutex_lock(&w->lock);
		w->fd = -1;
		w->walk = walk;
		w->done = true;
		pthread_cond_signal(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	release_walker(w);
	return NULL;
}

int memory_walker_new(struct memory_walker **out)
{
	struct memory_walker *w = calloc(1, sizeof(*w));
	pthread_condattr_t clock;
	int err;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	w->fd = -1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &clock);
	pthread_condattr_destroy(&clock);
	err = -pthread_create(&w->thread, NULL, serve_walks, w);
	if (err)
		release_walker(w);
	else
		*out = w;
	return err;
}

void memory_walker_ask(struct memory_walker *w, int fd)
{
	pthread_mutex_lock(&w->lock);
	w->fd = fd;
	w->done = false;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

bool memory_walker_take(struct memory_walker *w, uint64_t wait_ns, struct memory_walk *walk)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
				       .tv_nsec = (long)(until_ns % 1000000000)};
	bool done;

	pthread_mutex_lock(&w->lock);
	while (wait_ns && !w->done && w->fd >= 0 &&
	       pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
		;
	done = w->done;
	if (done)
		*walk = w->walk;
	w->done = false;
	pthread_mutex_unlock(&w->lock);
	return done;
}

void memory_walker_free(struct memory_walker *w)
{
	pthread_t thread;
	bool walks;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	thread = w->thread;
	walks = w->fd >= 0;
	w->released = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	/* A walk may last for as long as the process likes.  Without one the thread ends at once,
	 * and is not there any more when leaks of this process are looked for. */
	if (walks)
		pthread_detach(thread);
	else
		pthread_join(thread, NULL);
}
