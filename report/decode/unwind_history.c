/* unwind_history.c - see unwind_history.h */
#include "report/decode/unwind_history.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/hash_index.h"

/* Each takes some 10 KiB of memory.  A damaged trace may name any number of threads. */
#define MAX_THREADS  16384
#define MANY_THREADS 1024 /* so many are kept from one chunk to the next */

struct thread {
	uint32_t tgid, tid;
	struct dwunw_history *history; /* or NULL */
};

struct unwind_history {
	INTERN_OF(struct thread);
	size_t last; /* the one requested last */
};

int unwind_history_new(struct unwind_history **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static struct thread *find_thread(struct unwind_history *histories, uint32_t tgid, uint32_t tid)
{
	const struct thread key = {.tgid = tgid, .tid = tid}, *last;
	uint32_t number;

	last = histories->nr ? &histories->all[histories->last] : NULL;
	if (last && last->tgid == tgid && last->tid == tid)
		return &histories->all[histories->last];
	if (histories->nr < MAX_THREADS
		    ? intern_pair(&histories->table, &key, sizeof(key), &number) < 0
		    : !intern_find_pair(&histories->table, &key, sizeof(key), &number))
		return NULL;
	histories->last = number;
	return &histories->all[number];
}

struct dwunw_history *unwind_history_get(struct unwind_history *histories, uint32_t tgid,
					 uint32_t tid)
{
	struct thread *thread = find_thread(histories, tgid, tid);

	if (!thread)
		return NULL;
	if (!thread->history)
		dwunw_history_new(&thread->history);
	return thread->history;
}

void unwind_history_forget(struct unwind_history *histories, uint32_t tgid, uint32_t tid)
{
	struct thread *thread = find_thread(histories, tgid, tid);

	if (!thread)
		return;
	dwunw_history_free(thread->history);
	thread->history = NULL;
}

static bool keep_history(void *arg, void *thing)
{
	struct thread *thread = thing;

	if (thread->tgid != *(const uint32_t *)arg)
		return true;
	dwunw_history_free(thread->history);
	return false;
}

void unwind_history_end(struct unwind_history *histories, uint32_t tgid)
{
	intern_keep_pairs(&histories->table, sizeof(struct thread), keep_history, &tgid);
	histories->last = 0;
}

static void clear_histories(struct unwind_history *histories)
{
	for (size_t i = 0; i < histories->nr; i++)
		dwunw_history_free(histories->all[i].history);
	intern_release(&histories->table);
	histories->last = 0;
}

void unwind_history_trim(struct unwind_history *histories)
{
	if (histories->nr > MANY_THREADS)
		clear_histories(histories);
}

void unwind_history_free(struct unwind_history *histories)
{
	if (!histories)
		return;
	clear_histories(histories);
	free(histories);
}
