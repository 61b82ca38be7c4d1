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

int thread_names_note(struct thread_names *threads, uint32_t tgid, uint32_t tid, const char *name)
{
	struct thread thread = {.tgid = tgid, .tid = tid, .name = strdup(name)};
	uint32_t number;
	int added = thread.name ? intern_pair(&threads->table, &thread, sizeof(thread), &number)
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
	const uint32_t thread[] = {tgid, tid};
	uint32_t number;
	bool found = intern_find_pair(&threads->table, thread, sizeof(*threads->all), &number);

	return found ? threads->all[number].name : "";
}

void thread_names_each(const struct thread_names *threads,
		       void (*visit)(void *arg, uint32_t tid, const char *name), void *arg)
{
	for (size_t i = 0; i < threads->nr; i++)
		visit(arg, threads->all[i].tid, threads->all[i].name);
}

/* Which threads are kept. */
struct kept {
	bool (*is_gone)(void *arg, uint32_t tgid);
	void *arg;
};

static bool keep_name(void *arg, void *thing)
{
	const struct kept *kept = arg;
	struct thread *thread = thing;

	if (!kept->is_gone(kept->arg, thread->tgid))
		return true;
	free(thread->name);
	return false;
}

void thread_names_forget(struct thread_names *threads, bool (*is_gone)(void *arg, uint32_t tgid),
			 void *arg)
{
	struct kept kept = {is_gone, arg};

	intern_keep_pairs(&threads->table, sizeof(struct thread), keep_name, &kept);
}

void thread_names_free(struct thread_names *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->nr; i++)
		free(threads->all[i].name);
	intern_release(&threads->table);
	free(threads);
}
