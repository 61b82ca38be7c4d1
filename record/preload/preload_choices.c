/* preload_choices.c - see preload_choices.h
 *
 * What is chosen are single words that the library reads at each block: a new one counts for what
 * is allocated from then on.
 */
#include "record/preload/preload_choices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/event.h"
#include "record/filter/choices.h"

static uint32_t mode_of(const struct choice *c)
{
	return c->recorded ? EVENT_THREAD_FULL : EVENT_THREAD_HELD;
}

static bool is_chosen(uint32_t mode)
{
	return mode == EVENT_THREAD_FULL || mode == EVENT_THREAD_HELD;
}

/* All that is not chosen; nothing is.  What has reached a trigger stays. */
static int choose_all(struct preload_accounts *pa, const struct choice *c)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++) {
		__atomic_store_n(&pa->opts.choices[i].nr, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&pa->opts.choices[i].nr_passages, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&pa->opts.choices[i].mode, EVENT_THREAD_COUNTED, __ATOMIC_RELAXED);
	}
	for (uint32_t i = 0; i < PRELOAD_MAX_ACCOUNTS; i++) {
		uint32_t *mode = &pa->opts.shared[i].mode;

		if (is_chosen(__atomic_load_n(mode, __ATOMIC_RELAXED)))
			__atomic_store_n(mode, EVENT_THREAD_COUNTED, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&pa->opts.memory->all_threads, c->recorded, __ATOMIC_RELAXED);
	return 0;
}

/* The recorded process that has thread @tid; 0: none. */
static uint32_t process_of(struct preload *p, uint32_t tid)
{
	for (uint32_t slot = 0; slot < PRELOAD_MAX_PROCESSES; slot++) {
		uint32_t tgid = preload_process_in(p, slot);

		if (tgid && !preload_accounts(p)->opts.is_gone(tgid, tid))
			return tgid;
	}
	return 0;
}

/* It may have allocated nothing yet. */
static int choose_thread(struct preload *p, const struct choice *c)
{
	uint64_t tgid = process_of(p, (uint32_t)c->tid);
	struct preload_account *a = NULL;

	if (tgid)
		a = preload_account_find(preload_accounts(p)->opts.shared,
					 tgid << 32 | (uint32_t)c->tid, 1);
	if (!a)
		return tgid ? -E2BIG : -ESRCH;
	__atomic_store_n(&a->mode, mode_of(c), __ATOMIC_RELAXED);
	return 0;
}

/* For a moment a process may be without sites, if they do not only become more. */
static int choose_site(struct event_choices *shared, const struct choice *c)
{
	struct event_choices all = *shared;
	uint32_t was;
	int err;

	if (all.nr > EVENT_MAX_SITES)
		all.nr = 0;
	was = all.nr;
	err = choices_append_site(&all, c);
	if (err)
		return err;
	if (all.nr == was + 1) {
		shared->sites[was] = all.sites[was];
	} else {
		__atomic_store_n(&shared->nr, 0, __ATOMIC_SEQ_CST);
		memcpy(shared->sites, all.sites, sizeof(all.sites));
	}
	__atomic_store_n(&shared->nr, all.nr, __ATOMIC_RELEASE);
	return 0;
}

/* They only become more. */
static int choose_passage(struct event_choices *shared, const struct choice *c)
{
	struct event_choices all = *shared;
	int err;

	if (all.nr_passages > EVENT_MAX_PASSAGES)
		all.nr_passages = 0;
	err = choices_append_passage(&all, c);
	if (err)
		return err;
	memcpy(shared->passages, all.passages, sizeof(all.passages));
	__atomic_store_n(&shared->nr_passages, all.nr_passages, __ATOMIC_RELEASE);
	return 0;
}

static int choose_of_process(struct preload *p, const struct choice *c)
{
	uint32_t slot = 0;
	struct event_choices *shared;

	while (slot < PRELOAD_MAX_PROCESSES && preload_process_in(p, slot) != (uint32_t)c->pid)
		slot++;
	if (slot == PRELOAD_MAX_PROCESSES)
		return -ESRCH;
	shared = &preload_accounts(p)->opts.choices[slot];
	if (c->of == CHOICE_SITE)
		return choose_site(shared, c);
	if (c->of == CHOICE_PASSAGE)
		return choose_passage(shared, c);
	__atomic_store_n(&shared->mode, mode_of(c), __ATOMIC_RELAXED);
	return 0;
}

static int set_trigger(struct preload_header *h, const struct choice *c, char *why)
{
	const struct {
		bool kept;
		int64_t *bytes;
	} sums[TRIGGER_NR] = {{true, &h->triggers.thread},
			      {h->filter.sum_processes, &h->triggers.process},
			      {h->filter.sum_sites, &h->triggers.site}};

	if (!sums[c->trigger].kept) {
		choices_explain_trigger(why, c);
		return -EOPNOTSUPP;
	}
	__atomic_store_n(sums[c->trigger].bytes, (int64_t)c->bytes, __ATOMIC_RELAXED);
	return 0;
}

int preload_choose(struct preload *p, const struct choice *c, char *why)
{
	struct preload_accounts *pa = preload_accounts(p);
	int err;

	if (!pa->opts.shared) {
		choices_explain_none(why);
		return -EOPNOTSUPP;
	}
	if (c->of == CHOICE_ALL)
		return choose_all(pa, c);
	if (c->of == CHOICE_TRIGGER)
		return set_trigger(pa->opts.memory, c, why);
	err = c->of == CHOICE_THREAD ? choose_thread(p, c) : choose_of_process(p, c);
	if (err == -ESRCH)
		snprintf(why, CHOICE_WHY, "that process or thread is not recorded any more");
	else if (err)
		choices_explain(why, c, err);
	return err;
}

void preload_record_all(struct preload *p)
{
	struct preload_accounts *pa = preload_accounts(p);

	if (pa->opts.shared)
		__atomic_store_n(&pa->opts.memory->all_threads, 1, __ATOMIC_RELAXED);
}

/* Threads that are recorded, because they were chosen or reached a trigger. */
static uint64_t count_threads(const struct preload_accounts *pa)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < PRELOAD_MAX_ACCOUNTS; i++) {
		const struct preload_account *a = &pa->opts.shared[i];
		uint64_t key = __atomic_load_n(&a->key, __ATOMIC_ACQUIRE);
		uint32_t mode = __atomic_load_n(&a->mode, __ATOMIC_RELAXED);

		nr += key && !(key & PRELOAD_RETIRED) &&
		      (mode == EVENT_THREAD_FULL || mode == EVENT_THREAD_TRIGGERED);
	}
	return nr;
}

void preload_count_choices(struct preload *p, struct choice_counts *counts)
{
	const struct preload_accounts *pa = preload_accounts(p);
	const struct preload_header *h = pa->opts.memory;

	if (!pa->opts.shared)
		return;
	*counts = (struct choice_counts){.can_choose = true,
					 .threads = count_threads(pa),
					 .trigger = {(uint64_t)h->triggers.thread,
						     (uint64_t)h->triggers.process,
						     (uint64_t)h->triggers.site},
					 .all = h->all_threads};
	for (uint32_t slot = 0; slot < PRELOAD_MAX_PROCESSES; slot++) {
		const struct event_choices *c = &pa->opts.choices[slot];
		uint32_t pid = preload_process_in(p, slot);

		if (!pid)
			continue;
		counts->processes += __atomic_load_n(&c->mode, __ATOMIC_RELAXED) != 0;
		choices_list(c, (pid_t)pid, counts);
	}
}
