/* ahead.c - see ahead.h: the nth filling has place n modulo the number of places */
#include "report/base/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum state { FILLED, IN_HAND, READY };

struct ahead {
	struct ahead_steps steps;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* below the lock: */
	enum state states[AHEAD_PLACES]; /* of those that were filled and are not given back */
	uint64_t nr_filled, nr_back;
	bool taken; /* the first of them is the caller's */
	bool ended, stop;
	int err; /* why it ended */
};

static void set_state(struct ahead *a, size_t place, enum state state)
{
	pthread_mutex_lock(&a->lock);
	a->states[place] = state;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

/* Prepare @place, which is FILLED.  The lock is held before and after. */
static void prepare(struct ahead *a, size_t place)
{
	a->states[place] = IN_HAND;
	pthread_mutex_unlock(&a->lock);
	a->steps.prepare(a->steps.arg, place);
	set_state(a, place, READY);
	pthread_mutex_lock(&a->lock);
}

/* All places are in use: prepare the one that is wanted last, or wait.  The lock is held. */
static void be_useful(struct ahead *a)
{
	for (uint64_t n = a->nr_filled; n > a->nr_back + a->taken; n--)
		if (a->states[(n - 1) % AHEAD_PLACES] == FILLED) {
			prepare(a, (n - 1) % AHEAD_PLACES);
			return;
		}
	pthread_cond_wait(&a->changed, &a->lock);
}

/* Wait for a place to fill.  Returns false if no more is wanted. */
static bool next_to_fill(struct ahead *a, size_t *place)
{
	bool stop;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && a->nr_filled - a->nr_back == AHEAD_PLACES)
		be_useful(a);
	*place = a->nr_filled % AHEAD_PLACES;
	stop = a->stop;
	pthread_mutex_unlock(&a->lock);
	return !stop;
}

static void *fill_all(void *arg)
{
	struct ahead *a = arg;
	size_t place;
	int more = 0;

	while (next_to_fill(a, &place) && (more = a->steps.fill(a->steps.arg, place)) > 0) {
		pthread_mutex_lock(&a->lock);
		a->states[place] = a->steps.prepare ? FILLED : READY;
		a->nr_filled++;
		pthread_cond_broadcast(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	pthread_mutex_lock(&a->lock);
	a->err = more < 0 ? more : 0;
	a->ended = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int ahead_new(struct ahead **out, const struct ahead_steps *steps)
{
	struct ahead *a = *out = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->steps = *steps;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	err = -pthread_create(&a->thread, NULL, fill_all, a);
	if (!err)
		return 0;
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
	*out = NULL;
	return err;
}

int ahead_next(struct ahead *a, size_t *place)
{
	int more;

	pthread_mutex_lock(&a->lock);
	if (a->taken) {
		a->taken = false;
		a->nr_back++;
		pthread_cond_broadcast(&a->changed);
	}
	*place = a->nr_back % AHEAD_PLACES;
	while (!a->ended && a->nr_filled == a->nr_back)
		pthread_cond_wait(&a->changed, &a->lock);
	a->taken = a->nr_filled > a->nr_back;
	if (a->taken && a->states[*place] == FILLED)
		prepare(a, *place);
	while (a->taken && a->states[*place] != READY)
		pthread_cond_wait(&a->changed, &a->lock);
	more = a->taken ? 1 : a->err;
	pthread_mutex_unlock(&a->lock);
	return more;
}

void ahead_free(struct ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
