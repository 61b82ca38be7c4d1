/* choices.c - see choices.h */
#include "record/filter/choices.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bpf/event.h"
#include "mleak.bpf.skel.h"
#include "record/filter/filters.h"

#define MOST_COUNTED 65536 /* threads: as many as the map has room for */

static int64_t trigger_of(uint64_t bytes)
{
	return (int64_t)(bytes ? bytes : TRIGGER_NEVER);
}

void choices_begin(const struct filter_opts *f, struct mleak_bpf *skel)
{
	struct event_filter_control *control = &skel->bss->filter_control;

	control->trigger_bytes = trigger_of(f->trigger_bytes);
	control->trigger_process = trigger_of(f->trigger_process);
	control->trigger_site = trigger_of(f->trigger_site);
	control->all_full = f->choose == CHOOSE_RECORDED;
}

void choices_record_all(struct mleak_bpf *skel)
{
	skel->bss->filter_control.all_full = 1;
}

static uint32_t mode_of(const struct choice *c)
{
	return c->recorded ? EVENT_THREAD_FULL : EVENT_THREAD_HELD;
}

/* Take out of the table of threads what was chosen.  What has reached a trigger stays. */
static void forget_threads(int fd)
{
	uint32_t key, next, mode, *last = NULL;

	/* it begins again where the last one was taken out meanwhile */
	for (uint32_t i = 0; i < 2 * MOST_COUNTED && !bpf_map_get_next_key(fd, last, &next); i++) {
		bool chosen =
			!bpf_map_lookup_elem(fd, &next, &mode) && mode != EVENT_THREAD_TRIGGERED;

		if (chosen && !bpf_map_delete_elem(fd, &next))
			continue; /* the next one comes behind the same */
		key = next;
		last = &key;
	}
}

static void forget_processes(int fd)
{
	uint32_t key;

	/* one that has ended meanwhile is gone already */
	while (!bpf_map_get_next_key(fd, NULL, &key))
		if (bpf_map_delete_elem(fd, &key) && errno != ENOENT)
			break;
}

/* All that is not chosen; nothing is. */
static int choose_all(struct mleak_bpf *skel, const struct choice *c)
{
	struct event_filter_control *control = &skel->bss->filter_control;

	control->chosen = 0;
	forget_threads(bpf_map__fd(skel->maps.thread_modes));
	forget_processes(bpf_map__fd(skel->maps.process_choices));
	control->all_full = c->recorded;
	return 0;
}

static int choose_thread(const struct mleak_bpf *skel, const struct choice *c)
{
	uint32_t mode = mode_of(c), tid = (uint32_t)c->tid;

	return bpf_map_update_elem(bpf_map__fd(skel->maps.thread_modes), &tid, &mode, BPF_ANY);
}

/* Is @site the same place as @c? */
static bool is_same(const struct event_site *site, const struct choice *c)
{
	return site->start == c->start && site->size == c->size;
}

int choices_append_site(struct event_choices *all, const struct choice *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < all->nr; i++)
		if (!is_same(&all->sites[i], c))
			all->sites[kept++] = all->sites[i];
	all->nr = kept;
	if (kept == EVENT_MAX_SITES)
		return -ENOSPC;
	all->sites[all->nr++] =
		(struct event_site){.start = c->start, .size = c->size, .mode = mode_of(c)};
	return 0;
}

_Static_assert(CHOICE_MOST_UP < EVENT_MOST_UP, "what a request may say");

int choices_append_passage(struct event_choices *all, const struct choice *c)
{
	uint32_t i = 0;

	while (i < all->nr_passages && i < EVENT_MAX_PASSAGES &&
	       (all->passages[i].start != c->start || all->passages[i].size != c->size))
		i++;
	if (i == EVENT_MAX_PASSAGES)
		return -ENOSPC;
	all->passages[i] = (struct event_passage){.start = c->start, .size = c->size, .up = c->up};
	if (i == all->nr_passages)
		all->nr_passages++;
	return 0;
}

/* The process's entry is replaced as a whole: the programs see the old one or the new one. */
static int choose_of_process(struct mleak_bpf *skel, const struct choice *c)
{
	int fd = bpf_map__fd(skel->maps.process_choices), err = 0;
	uint32_t tgid = (uint32_t)c->pid;
	struct event_choices all = {0};
	struct event_code code;

	if (bpf_map_lookup_elem(fd, &tgid, &all))
		all = (struct event_choices){0};
	if (c->of == CHOICE_PROCESS)
		all.mode = mode_of(c);
	else if (c->of == CHOICE_PASSAGE)
		err = choices_append_passage(&all, c);
	else
		err = choices_append_site(&all, c);
	/* before: from then on the end of a process takes its entry along */
	if (!err)
		skel->bss->filter_control.chosen = 1;
	if (!err)
		err = bpf_map_update_elem(fd, &tgid, &all, BPF_ANY);
	/* its end may have been before the entry */
	if (!err && bpf_map_lookup_elem(bpf_map__fd(skel->maps.targets), &tgid, &code)) {
		bpf_map_delete_elem(fd, &tgid);
		err = -ESRCH;
	}
	return err;
}

void choices_explain_trigger(char *why, const struct choice *c)
{
	static const char *const names[] = {"threads", "process", "site"};

	if (c->trigger == TRIGGER_THREAD)
		snprintf(why, CHOICE_WHY,
			 "what threads have outstanding was not counted: record with --choose or "
			 "--trigger BYTES");
	else
		snprintf(why, CHOICE_WHY,
			 "what a %s has outstanding was not counted: record with --trigger "
			 "%s:BYTES, be it 1T",
			 names[c->trigger], names[c->trigger]);
}

static int set_trigger(struct mleak_bpf *skel, const struct choice *c, char *why)
{
	struct event_filter_control *control = &skel->bss->filter_control;
	const struct event_filter *filter = (const struct event_filter *)&skel->rodata->filter;
	const struct {
		bool kept;
		__s64 *bytes;
	} sums[TRIGGER_NR] = {{filter->accounts, &control->trigger_bytes},
			      {filter->sum_processes, &control->trigger_process},
			      {filter->sum_sites, &control->trigger_site}};

	if (sums[c->trigger].kept) {
		*sums[c->trigger].bytes = (int64_t)c->bytes;
		return 0;
	}
	choices_explain_trigger(why, c);
	return -EOPNOTSUPP;
}

void choices_explain(char *why, const struct choice *c, int err)
{
	if (err == -ENOSPC && c->of == CHOICE_PASSAGE)
		snprintf(
			why, CHOICE_WHY,
			"process %d has more places in operator new than the %d that can be looked "
			"through: choose threads",
			(int)c->pid, EVENT_MAX_PASSAGES);
	else if (err == -ENOSPC)
		snprintf(why, CHOICE_WHY,
			 "%d sites of process %d are chosen, and no more can be: --thread "
			 "all=recorded or all=counted begins anew",
			 EVENT_MAX_SITES, (int)c->pid);
	else if (err == -ESRCH)
		snprintf(why, CHOICE_WHY, "process %d has ended", (int)c->pid);
	else if (err == -E2BIG)
		snprintf(why, CHOICE_WHY, "the table is full: too many are chosen");
	else
		snprintf(why, CHOICE_WHY, "the BPF map cannot be changed: %s", strerror(-err));
}

void choices_explain_none(char *why)
{
	snprintf(why, CHOICE_WHY,
		 "all is recorded, which cannot be changed: record with --choose, --trigger or "
		 "--tid");
}

int choices_apply(struct mleak_bpf *skel, const struct choice *c, char *why)
{
	int err;

	if (!skel->rodata->filter.by_thread) {
		choices_explain_none(why);
		return -EOPNOTSUPP;
	}
	switch (c->of) {
	case CHOICE_ALL:
		return choose_all(skel, c);
	case CHOICE_TRIGGER:
		return set_trigger(skel, c, why);
	case CHOICE_THREAD:
		err = choose_thread(skel, c);
		break;
	default:
		err = choose_of_process(skel, c);
	}
	if (err)
		choices_explain(why, c, err);
	return err;
}

/* Threads that are sent, because they were chosen or reached a trigger. */
static uint64_t count_threads(int fd)
{
	uint32_t key, mode;
	uint64_t nr = 0;

	for (uint32_t i = 0, *last = NULL; i < MOST_COUNTED; i++, last = &key) {
		if (bpf_map_get_next_key(fd, last, &key))
			break;
		nr += !bpf_map_lookup_elem(fd, &key, &mode) &&
		      (mode == EVENT_THREAD_FULL || mode == EVENT_THREAD_TRIGGERED);
	}
	return nr;
}

void choices_list(const struct event_choices *choices, pid_t pid, struct choice_counts *counts)
{
	for (uint32_t i = 0; i < choices->nr && i < EVENT_MAX_SITES; i++) {
		const struct event_site *site = &choices->sites[i];

		counts->sites++;
		if (counts->nr_listed < CHOICE_LISTED)
			counts->listed[counts->nr_listed++] =
				(struct choice_listed){.pid = pid,
						       .start = site->start,
						       .size = site->size,
						       .recorded = site->mode == EVENT_THREAD_FULL};
	}
}

static void count_processes(int fd, struct choice_counts *counts)
{
	struct event_choices choices;
	uint32_t key;

	for (uint32_t i = 0, *last = NULL; i < EVENT_MAX_TARGETS; i++, last = &key) {
		if (bpf_map_get_next_key(fd, last, &key))
			break;
		if (bpf_map_lookup_elem(fd, &key, &choices))
			continue;
		counts->processes += choices.mode != EVENT_THREAD_COUNTED;
		choices_list(&choices, (pid_t)key, counts);
	}
}

void choices_count(const struct mleak_bpf *skel, struct choice_counts *counts)
{
	const struct event_filter_control *control = &skel->bss->filter_control;

	*counts = (struct choice_counts){
		.can_choose = skel->rodata->filter.by_thread,
		.trigger = {(uint64_t)control->trigger_bytes, (uint64_t)control->trigger_process,
			    (uint64_t)control->trigger_site},
		.all = control->all_full || !skel->rodata->filter.by_thread,
	};
	if (!counts->can_choose)
		return;
	counts->threads = count_threads(bpf_map__fd(skel->maps.thread_modes));
	if (control->chosen)
		count_processes(bpf_map__fd(skel->maps.process_choices), counts);
}
