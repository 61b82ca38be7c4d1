/* live_forget.c - processes that have ended give back what they take: see live_forget_ended() */
#include "report/live/live_state.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

static int compare_ids(const void *a, const void *b)
{
	const struct live_ended *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Those that are to be forgotten. */
static int list_ended(const struct live *live, size_t keep, struct live_ended **ended, size_t *nr)
{
	size_t room = 0;
	int err = 0;

	for (size_t i = 0; i < live->nr && !err; i++) {
		const struct process *process = &live->all[i];
		const struct live_ended one = {process->tgid, (uint32_t)i, process->ended_ns};

		if (!process->forgotten && process->ended_as &&
		    process->ended_as + keep <= live->nr_ended)
			err = array_append(ended, nr, &room, &one, sizeof(one));
	}
	if (*nr)
		qsort(*ended, *nr, sizeof(**ended), compare_ids);
	return err;
}

static int forget(struct live *live, uint32_t number)
{
	struct process *process = &live->all[number];
	struct live_totals before = live->totals;
	int err;

	live->event = NULL;
	err = live_lose_all(live, process);
	live_account(live, process, &before);
	if (!err)
		err = array_append(&live->unused, &live->nr_unused, &live->unused_room, &number,
				   sizeof(number));
	live->nr_forgotten += !err;
	*process = (struct process){.exited = true, .forgotten = true};
	return err;
}

/* Is @a what its number means rather than @b? */
static bool is_newer(const struct process *a, const struct process *b)
{
	return b->exited && (!a->exited || a->ended_as > b->ended_as);
}

/* Find the processes by their ids, without those that were forgotten. */
static void index_anew(struct live *live)
{
	struct hash_query query = {.things = live, .equal = live_same_process};

	hash_index_clear(&live->index);
	for (uint32_t i = 0; i < live->nr; i++) {
		struct process *process = &live->all[i], *first;
		uint32_t number;

		if (process->forgotten)
			continue;
		query.key = &process->tgid;
		query.hash = hash_word(0, process->tgid);
		process->newest = i;
		if (!hash_index_find(&live->index, &query, &number)) {
			hash_index_add(&live->index, query.hash, i);
			continue;
		}
		first = &live->all[number];
		if (is_newer(process, &live->all[first->newest]))
			first->newest = i;
	}
}

int live_forget_ended(struct live *live, size_t keep, struct live_ended **ended, size_t *nr)
{
	int err;

	*ended = NULL;
	*nr = 0;
	/* at once, so that what it costs is shared by as many */
	if (live->nr_ended - live->nr_forgotten < 2 * keep)
		return 0;
	err = list_ended(live, keep, ended, nr);
	for (size_t i = 0; i < *nr && !err; i++)
		err = forget(live, (*ended)[i].number);
	index_anew(live);
	if (err) {
		free(*ended);
		*ended = NULL;
		*nr = 0;
	}
	return err;
}
