/* words_ahead.c - see words_ahead.h */
#include "report/reach/words_ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/ahead.h"
#include "report/base/array.h"

/* A chunk of words, two and a half megabytes if it is full. */
struct place {
	struct found_words found;
	struct mlk_pointer *words;
	size_t words_room, to_room;
};

struct words_ahead {
	struct mlk_reader *trace;
	struct words_wanted wanted;
	struct ahead *ahead;
	struct place places[AHEAD_PLACES];
};

static int keep_words(struct place *place, const struct mlk_pointers *from)
{
	size_t nr = from->nr + !from->nr;
	void *words = array_grow(place->words, &place->words_room, nr, sizeof(*place->words));
	void *to;

	if (!words)
		return -ENOMEM;
	place->words = words;
	to = array_grow(place->found.to, &place->to_room, nr, sizeof(*place->found.to));
	if (!to)
		return -ENOMEM;
	place->found.to = to;
	if (from->nr)
		memcpy(words, from->words, from->nr * sizeof(*place->words));
	place->found.pointers = *from;
	place->found.pointers.words = words;
	return 1;
}

static int read_words(void *arg, size_t place)
{
	struct words_ahead *w = arg;
	struct mlk_record record;
	int more = mlk_reader_next(w->trace, &record);

	return more > 0 ? keep_words(&w->places[place], &record.pointers) : more;
}

static void find_words(void *arg, size_t place)
{
	struct words_ahead *w = arg;
	struct found_words *found = &w->places[place].found;
	const struct mlk_pointers *p = &found->pointers;
	const struct reach_world *world = w->wanted.world_of(w->wanted.arg, p->tgid);

	if (world)
		reach_world_find(world, p->words, p->nr, found->to);
}

int words_ahead_new(struct words_ahead **out, struct mlk_reader *trace,
		    const struct words_wanted *wanted)
{
	struct words_ahead *w = *out = calloc(1, sizeof(*w));
	const struct ahead_steps steps = {.fill = read_words, .prepare = find_words, .arg = w};
	int err;

	if (!w)
		return -ENOMEM;
	w->trace = trace;
	w->wanted = *wanted;
	mlk_reader_rewind(trace, MLK_RECORD_POINTERS);
	err = ahead_new(&w->ahead, &steps);
	if (!err)
		return 0;
	free(w);
	*out = NULL;
	return err;
}

int words_ahead_next(struct words_ahead *w, const struct found_words **words)
{
	size_t place;
	int more = ahead_next(w->ahead, &place);

	*words = more > 0 ? &w->places[place].found : NULL;
	return more;
}

void words_ahead_free(struct words_ahead *w)
{
	if (!w)
		return;
	ahead_free(w->ahead);
	for (int i = 0; i < AHEAD_PLACES; i++) {
		free(w->places[i].words);
		free(w->places[i].found.to);
	}
	free(w);
}
