/* words_ahead.c - see words_ahead.h: chunk n has place n modulo the number of places */
#include "report/reach/words_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/array.h"

#define PLACES 4 /* two megabytes each, if chunks are full */

struct place {
	struct mlk_pointers pointers;
	struct mlk_pointer *words;
	size_t room;
};

struct words_ahead {
	struct mlk_reader *trace;
	pthread_t thread;
	struct place places[PLACES];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* below the lock: */
	uint64_t nr_read, nr_taken; /* chunks; those that were taken are not used any more */
	bool ended, stop;
	int err; /* why it ended */
};

/* Wait until there is room.  Returns NULL if no more is wanted. */
static struct place *free_place(struct words_ahead *w)
{
	struct place *place;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && w->nr_read - w->nr_taken == PLACES)
		pthread_cond_wait(&w->changed, &w->lock);
	place = w->stop ? NULL : &w->places[w->nr_read % PLACES];
	pthread_mutex_unlock(&w->lock);
	return place;
}

static int keep_words(struct place *place, const struct mlk_pointers *from)
{
	void *words = array_grow(place->words, &place->room, from->nr, sizeof(*place->words));

	if (!words && from->nr)
		return -ENOMEM;
	place->words = words;
	if (from->nr)
		memcpy(words, from->words, from->nr * sizeof(*place->words));
	place->pointers = *from;
	place->pointers.words = words;
	return 0;
}

static void *read_words(void *arg)
{
	struct words_ahead *w = arg;
	struct mlk_record record;
	struct place *place;
	int more = 0, err = 0;

	while (!err && (place = free_place(w)) && (more = mlk_reader_next(w->trace, &record)) > 0) {
		err = keep_words(place, &record.pointers);
		pthread_mutex_lock(&w->lock);
		w->nr_read += !err;
		pthread_cond_signal(&w->changed);
		pthread_mutex_unlock(&w->lock);
	}
	pthread_mutex_lock(&w->lock);
	w->err = err ? err : more < 0 ? more : 0;
	w->ended = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int words_ahead_new(struct words_ahead **out, struct mlk_reader *trace)
{
	struct words_ahead *w = *out = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->trace = trace;
	mlk_reader_rewind(trace, MLK_RECORD_POINTERS);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	err = -pthread_create(&w->thread, NULL, read_words, w);
	if (!err)
		return 0;
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
	*out = NULL;
	return err;
}

int words_ahead_next(struct words_ahead *w, const struct mlk_pointers **words)
{
	int more;

	pthread_mutex_lock(&w->lock);
	if (*words) {
		w->nr_taken++;
		pthread_cond_signal(&w->changed);
	}
	while (!w->ended && w->nr_read == w->nr_taken)
		pthread_cond_wait(&w->changed, &w->lock);
	more = w->nr_read > w->nr_taken ? 1 : w->err;
	*words = more > 0 ? &w->places[w->nr_taken % PLACES].pointers : NULL;
	pthread_mutex_unlock(&w->lock);
	return more;
}

void words_ahead_free(struct words_ahead *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	for (int i = 0; i < PLACES; i++)
		free(w->places[i].words);
	free(w);
}
