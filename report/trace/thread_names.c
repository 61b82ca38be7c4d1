/* thread_names.c - see thread_names.h */
#include "report/trace/thread_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/hash_index.h"

struct thread {
	uint32_t tgid, tid;
	char *name;
};

struct thread_names {
	INTERN_OF(struct thread);
};

int thread_names_new(struct thread_names **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static bool same_thread(const void *things, uint32_t number, const void *key)
{
	const struct thread *a = &((const struct thread_names *)things)->all[number], *b = key;

	return a->tgid == b->tgid && a->tid == b->tid;
}

static struct hash_query query_for_thread(const struct thread_names *threads,
					  const struct thread *key)
{
	return (struct hash_query){
		.hash = hash_word(key->tgid, key->tid),
		.things = threads,
		.key = key,
		.equal = same_thread,
	};
}

int thread_names_note(struct thread_names *threads, uint32_t tgid, uint32_t tid, const char *name)
{
	struct thread thread = {.tgid = tgid, .tid = tid, .name = strdup(name)};
	struct hash_query query = query_for_thread(threads, &thread);
	uint32_t number;
	int added = thread.name ? intern(&threads->table, &query, &thread, sizeof(thread), &number)
				: -ENOMEM;

	if (added > 0)
		return 0;
	if (!added) {
		free(threads->all[number].name);
		threads->all[number].name = thread.name;
		return 0;
	}
	free(thread.name);
	return added;
}

const char *thread_names_get(const struct thread_names *threads, uint32_t tgid, uint32_t tid)
{
	struct thread key = {.tgid = tgid, .tid = tid};
	struct hash_query query = query_for_thread(threads, &key);
	uint32_t number;

	return hash_index_find(&threads->index, &query, &number) ? threads->all[number].name : "";
}

void thread_names_each(const struct thread_names *threads,
		       void (*visit)(void *arg, uint32_t tid, const char *name), void *arg)
{
	for (size_t i = 0; i < threads->nr; i++)
		visit(arg, threads->all[i].tid, threads->all[i].name);
}

void thread_names_free(struct thread_names *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->nr; i++)
		free(threads->all[i].name);
	free(threads->all);
	hash_index_release(&threads->index);
	free(threads);
}
