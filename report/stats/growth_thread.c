/* growth_thread.c - see growth_thread.h */
#include "report/stats/growth_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define PLACES 4u    /* lists: one is filled, one read, the others wait for either */
#define ROOM   4096u /* changes of each: all lists together stay in the processor's cache */
#define AHEAD  8u    /* changes, of which the figures are brought near */

/* What growth.h looks at of a change. */
struct noted {
	uint64_t time_ns;	/* of the event */
	uint64_t since_ns;	/* the block's allocation */
	uint64_t bytes, blocks; /* more of the sum */
	uint64_t size;		/* of the block */
	uint32_t stack;
	uint8_t sum; /* enum live_sum */
	bool outstanding, at_end, known;
};

struct growth_thread {
	struct growth *growth;
	struct noted *lists[PLACES];
	size_t at; /* in the list that is filled */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	/* below the lock: */
	size_t nr[PLACES];	     /* changes in those that were filled */
	uint64_t nr_filled, nr_read; /* lists; the nth has place n modulo PLACES */
	bool ended;
};

/* Take in the change at @noted.  That of a LIVE_OLDER has its older block behind it. */
static void take_change(struct growth *growth, const struct noted *noted, struct mlk_event *event)
{
	const struct live_block older = {.size = noted[1].size,
					 .stack = noted[1].stack,
					 .time_ns = noted[1].since_ns,
					 .known = noted[1].known};
	const struct live_block block = {
		.size = noted->size, .time_ns = noted->since_ns, .stack = noted->stack};
	const struct live_change change = {.sum = noted->sum,
					   .outstanding = noted->outstanding,
					   .block = &block,
					   .event = noted->at_end ? NULL : event,
					   .more = {noted->blocks, noted->bytes},
					   .older = noted->sum == LIVE_OLDER ? &older : NULL};

	event->time_ns = noted->time_ns;
	growth_take(growth, &change);
}

static void take_list(struct growth *growth, const struct noted *list, size_t nr)
{
	struct mlk_event event = {0};

	for (size_t i = 0; i < nr; i++) {
		if (i + AHEAD < nr)
			growth_expect(growth, list[i + AHEAD].stack);
		take_change(growth, &list[i], &event);
		i += list[i].sum == LIVE_OLDER;
	}
}

/* Wait for a list.  Returns false when there will be none. */
static bool next_list(struct growth_thread *t, size_t *place)
{
	bool more;

	pthread_mutex_lock(&t->lock);
	while (t->nr_filled == t->nr_read && !t->ended)
		pthread_cond_wait(&t->moved, &t->lock);
	*place = t->nr_read % PLACES;
	more = t->nr_filled > t->nr_read;
	pthread_mutex_unlock(&t->lock);
	return more;
}

static void *take_all(void *arg)
{
	struct growth_thread *t = arg;
	size_t place;

	while (next_list(t, &place)) {
		take_list(t->growth, t->lists[place], t->nr[place]);
		pthread_mutex_lock(&t->lock);
		t->nr_read++;
		pthread_cond_signal(&t->moved);
		pthread_mutex_unlock(&t->lock);
	}
	return NULL;
}

/* Give the thread the list that was filled, and wait for the next one's place. */
static void pass_list(struct growth_thread *t)
{
	pthread_mutex_lock(&t->lock);
	t->nr[t->nr_filled++ % PLACES] = t->at;
	pthread_cond_signal(&t->moved);
	while (t->nr_filled - t->nr_read == PLACES)
		pthread_cond_wait(&t->moved, &t->lock);
	pthread_mutex_unlock(&t->lock);
	t->at = 0;
}

static struct noted *next_noted(struct growth_thread *t)
{
	return &t->lists[t->nr_filled % PLACES][t->at++];
}

void growth_thread_changed(struct growth_thread *t, const struct live_change *change)
{
	*next_noted(t) = (struct noted){
		.time_ns = change->event ? change->event->time_ns : 0,
		.since_ns = change->block->time_ns,
		.bytes = change->more.bytes,
		.blocks = change->more.blocks,
		.size = change->block->size,
		.stack = change->block->stack,
		.sum = (uint8_t)change->sum,
		.outstanding = change->outstanding,
		.at_end = !change->event,
	};
	if (change->sum == LIVE_OLDER)
		*next_noted(t) = (struct noted){.since_ns = change->older->time_ns,
						.size = change->older->size,
						.stack = change->older->stack,
						.known = change->older->known};
	if (t->at >= ROOM - 1) /* there is room for two */
		pass_list(t);
}

static void release(struct growth_thread *t)
{
	free(t->lists[0]);
	free(t);
}

int growth_thread_new(struct growth_thread **out, struct growth *growth)
{
	struct growth_thread *t = calloc(1, sizeof(*t));
	struct noted *room = calloc(PLACES * ROOM + 1, sizeof(*room)); /* one is read behind each */
	int err;

	*out = NULL;
	if (!t || !room) {
		free(t);
		free(room);
		return -ENOMEM;
	}
	t->growth = growth;
	for (size_t i = 0; i < PLACES; i++)
		t->lists[i] = room + i * ROOM;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->moved, NULL);
	err = -pthread_create(&t->thread, NULL, take_all, t);
	if (err)
		release(t);
	else
		*out = t;
	return err;
}

void growth_thread_end(struct growth_thread *t)
{
	if (!t)
		return;
	pass_list(t);
	pthread_mutex_lock(&t->lock);
	t->ended = true;
	pthread_cond_signal(&t->moved);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->moved);
	pthread_mutex_destroy(&t->lock);
	release(t);
}
