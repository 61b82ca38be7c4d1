/* memory_samples.c - see memory_samples.h */
#include "report/trace/memory_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

/* That of @tgid, added if there is room; *@out is NULL if not. */
static int find_or_add(struct memory_samples *samples, uint32_t tgid, struct memory_process **out)
{
	struct memory_process fresh = {.tgid = tgid, .stride = 1};
	const uint32_t key[] = {tgid, 0};
	uint32_t at;
	int added;

	*out = NULL;
	if (!intern_find_pair(&samples->table, key, sizeof(*samples->all), &at)) {
		if (samples->nr >= MEMORY_PROCESSES_MAX)
			return 0;
		added = intern_pair(&samples->table, &fresh, sizeof(fresh), &at);
		if (added < 0)
			return added;
	}
	*out = &samples->all[at];
	return 0;
}

/* Had the process ended by then? */
static bool is_end(const struct mlk_memory *sample)
{
	return !sample->known && sample->error == ESRCH;
}

/* Keep the first of each two; and ends, or what is of another process with the number would go on
 * from what is of the one before. */
static void thin_out(struct memory_process *p)
{
	size_t kept = 0, nr = p->nr;

	for (size_t i = 0; i < nr; i++)
		if (i % 2 == 0 || is_end(&p->all[i]))
			p->all[kept++] = p->all[i];
	p->nr = kept;
	p->stride *= 2;
	if (kept <= MEMORY_SAMPLES_MAX / 4 * 3)
		return;
	/* almost all are ends: keep some of them, with what was before */
	for (size_t i = kept = 0; i < p->nr; i++)
		if (i % 4 < 2)
			p->all[kept++] = p->all[i];
	p->nr = kept;
}

/* The last one kept is the latest; unless its turn has come, it gives way to the next one.  An end
 * gives way to none, and is behind what there was before it. */
static int keep_sample(struct memory_process *p, const struct mlk_memory *sample)
{
	bool gives_way = p->nr > 1 && (p->taken - 1) % p->stride != 0 &&
			 !is_end(&p->all[p->nr - 1]) && !is_end(sample);

	p->taken++;
	if (gives_way) {
		p->all[p->nr - 1] = *sample;
		return 0;
	}
	if (p->nr == MEMORY_SAMPLES_MAX)
		thin_out(p);
	return array_append(&p->all, &p->nr, &p->room, sample, sizeof(*sample));
}

int memory_samples_note(struct memory_samples *samples, const struct mlk_memory *sample)
{
	struct mlk_memory copy = *sample;
	struct memory_process *p;
	int err = find_or_add(samples, sample->tgid, &p);

	if (err)
		return err;
	if (!samples->first_ns || sample->time_ns < samples->first_ns)
		samples->first_ns = sample->time_ns;
	if (!p) {
		samples->left_out++;
		return 0;
	}
	if (p->nr && copy.time_ns < p->all[p->nr - 1].time_ns)
		copy.time_ns = p->all[p->nr - 1].time_ns;
	if (!copy.known && copy.error && copy.error != ESRCH && !p->failed++)
		p->error = copy.error;
	return keep_sample(p, &copy);
}

const struct memory_process *memory_samples_find(const struct memory_samples *samples,
						 uint32_t tgid)
{
	const uint32_t key[] = {tgid, 0};
	uint32_t at;

	return intern_find_pair(&samples->table, key, sizeof(*samples->all), &at)
		       ? &samples->all[at]
		       : NULL;
}

const struct mlk_memory *memory_sample_at(const struct memory_process *process,
					  enum mlk_memory_value value, uint64_t time_ns)
{
	size_t low = 0, high = process->nr;

	/* behind the last one that is not later */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->all[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && is_end(&process->all[low - 1]))
		return NULL;
	while (low-- > 0) {
		const struct mlk_memory *sample = &process->all[low];

		if (is_end(sample))
			return NULL; /* of another process, which had the number before */
		if (sample->known >> value & 1)
			return sample;
	}
	return NULL;
}

bool memory_samples_at(const struct memory_samples *samples, enum mlk_memory_value value,
		       uint64_t time_ns, uint64_t *bytes)
{
	bool known = false;

	*bytes = 0;
	for (size_t i = 0; i < samples->nr; i++) {
		const struct memory_process *p = &samples->all[i];
		const struct mlk_memory *sample =
			p->tgid ? memory_sample_at(p, value, time_ns) : NULL;

		if (!sample)
			continue;
		known = true;
		if (__builtin_add_overflow(*bytes, sample->value[value], bytes))
			*bytes = UINT64_MAX;
	}
	return known;
}

/* Which processes are kept. */
struct kept {
	bool (*is_gone)(void *arg, uint32_t tgid);
	void *arg;
};

static bool keep_process(void *arg, void *thing)
{
	const struct kept *kept = arg;
	struct memory_process *p = thing;

	if (!p->tgid || !kept->is_gone(kept->arg, p->tgid))
		return true;
	free(p->all);
	return false;
}

void memory_samples_forget(struct memory_samples *samples,
			   bool (*is_gone)(void *arg, uint32_t tgid), void *arg)
{
	struct kept kept = {is_gone, arg};

	intern_keep_pairs(&samples->table, sizeof(*samples->all), keep_process, &kept);
}

void memory_samples_release(struct memory_samples *samples)
{
	for (size_t i = 0; i < samples->nr; i++)
		free(samples->all[i].all);
	intern_release(&samples->table);
}
