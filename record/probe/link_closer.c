/* link_closer.c - see link_closer.h */
#include "record/probe/link_closer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/privilege/privileges.h"
#include "record/privilege/sandbox.h"

#define MAX_THREADS 256	   /* that wait side by side */
#define STACK	    262144 /* bytes, of each */

struct lot {
	int *fds;
	size_t nr, room;
};

struct link_closer {
	pthread_t thread; /* that takes all there is, again and again */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct lot waiting;
	bool busy; /* others are being closed */
	bool over;
};

/* What one thread closes: each @step-th from the @first on. */
struct share {
	const struct lot *lot;
	size_t first, step;
};

static void *close_share(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->lot->nr; i += share->step)
		close(share->lot->fds[i]);
	return NULL;
}

static void close_lot(struct lot *lot)
{
	size_t nr = lot->nr < MAX_THREADS ? lot->nr : MAX_THREADS;
	struct share shares[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	bool started[MAX_THREADS];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (size_t i = 0; i < nr; i++) {
		shares[i] = (struct share){.lot = lot, .first = i, .step = nr};
		started[i] = !pthread_create(&threads[i], &attr, close_share, &shares[i]);
	}
	for (size_t i = 0; i < nr; i++)
		if (!started[i])
			close_share(&shares[i]);
	for (size_t i = 0; i < nr; i++)
		if (started[i])
			pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
	free(lot->fds);
}

static void *run(void *arg)
{
	struct link_closer *c = arg;

	sandbox_enter();
	privileges_keep_in_thread(0); /* closing takes none */
	pthread_mutex_lock(&c->lock);
	while (!c->over || c->waiting.nr) {
		struct lot lot = c->waiting;

		if (!lot.nr) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->waiting = (struct lot){0};
		c->busy = true;
		pthread_mutex_unlock(&c->lock);
		close_lot(&lot);
		pthread_mutex_lock(&c->lock);
		c->busy = false;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int link_closer_new(struct link_closer **out)
{
	struct link_closer *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	err = -pthread_create(&c->thread, NULL, run, c);
	if (err)
		free(c);
	else
		*out = c;
	return err;
}

static bool append(struct lot *lot, int fd)
{
	if (lot->nr == lot->room) {
		size_t room = lot->room ? lot->room * 2 : 16;
		int *fds = realloc(lot->fds, room * sizeof(*fds));

		if (!fds)
			return false;
		lot->fds = fds;
		lot->room = room;
	}
	lot->fds[lot->nr++] = fd;
	return true;
}

void link_closer_add(struct link_closer *c, int fd)
{
	bool added;

	pthread_mutex_lock(&c->lock);
	added = append(&c->waiting, fd);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (!added)
		close(fd);
}

void link_closer_wait(struct link_closer *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->busy || c->waiting.nr)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void link_closer_free(struct link_closer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}
