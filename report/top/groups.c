/* groups.c - see groups.h */
#include "report/top/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double order_of(const struct group *group, enum top_sort sort)
{
	switch (sort) {
	case TOP_BLOCKS:
		return (double)group->now.blocks;
	case TOP_RATE:
		return group->rate;
	case TOP_AGE:
		return (double)group->age_ns;
	default:
		return 0;
	}
}

static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct group *x = a, *y = b;
	double first = order_of(x, *(const enum top_sort *)arg);
	double second = order_of(y, *(const enum top_sort *)arg);

	if (first < second || first > second)
		return first > second ? -1 : 1;
	if (x->now.bytes != y->now.bytes)
		return x->now.bytes > y->now.bytes ? -1 : 1;
	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

void groups_sort(struct groups *groups, enum top_sort sort)
{
	if (groups->nr)
		qsort_r(groups->all, groups->nr, sizeof(*groups->all), compare_groups, &sort);
}

/* What the kernel's blocks with the origin @number are summed up by, to be freed. */
static char *name_origin(const struct replay *leaks, enum group_kind kind, uint32_t number)
{
	const struct origin *origin = origins_get(&leaks->origins, number);
	char *text = NULL;
	int len;

	if (!origin)
		return strdup("[not known]");
	if (kind == GROUPS_CGROUPS)
		return strdup(*origin->cgroup ? origin->cgroup : "[not known]");
	if (kind == GROUPS_CACHES && *origin->cache)
		return strdup(origin->cache);
	if (kind == GROUPS_CACHES)
		len = asprintf(&text, "pages of order %" PRIu32, origin->order);
	else
		len = asprintf(&text, "%s (%" PRIu32 ")", origin->process, origin->tgid);
	return len < 0 ? NULL : text;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct group *)a)->name, ((const struct group *)b)->name);
}

/* Origins with one name are one group.  Returns 0 or -ENOMEM. */
static int merge_origins(struct groups *groups, const struct replay *leaks)
{
	size_t nr = 0;

	for (size_t i = 0; i < groups->nr; i++) {
		groups->all[i].name = name_origin(leaks, groups->kind, groups->all[i].tgid);
		if (!groups->all[i].name)
			return -ENOMEM;
	}
	if (groups->nr)
		qsort(groups->all, groups->nr, sizeof(*groups->all), compare_names);
	for (size_t i = 0; i < groups->nr; i++) {
		if (!nr || compare_names(&groups->all[nr - 1], &groups->all[i])) {
			groups->all[nr++] = groups->all[i];
			continue;
		}
		live_amount_add(&groups->all[nr - 1].now, groups->all[i].now);
		groups->all[nr - 1].born_us += groups->all[i].born_us;
		free(groups->all[i].name);
	}
	groups->nr = nr;
	return 0;
}

/* The name of @group, to be freed. */
static char *name_group(const struct replay *leaks, enum group_kind kind, const struct group *group)
{
	const char *name;
	char *text;

	if (kind != GROUPS_THREADS)
		return processes_label(leaks->processes, group->tgid);
	name = thread_names_get(leaks->threads, group->tgid, group->tid);
	if (asprintf(&text, "%s (%" PRIu32 "/%" PRIu32 ")", name[0] ? name : "thread", group->tgid,
		     group->tid) < 0)
		return NULL;
	return text;
}

/* They keep their names when the replay forgets a process. */
static int name_groups(struct groups *groups, const struct replay *leaks)
{
	for (size_t i = 0; i < groups->nr; i++) {
		groups->all[i].name = name_group(leaks, groups->kind, &groups->all[i]);
		if (!groups->all[i].name)
			return -ENOMEM;
	}
	return 0;
}

static void add_holding(struct groups *groups, const struct holdings *from,
			const struct holding *cell)
{
	const struct holder_thread *thread = &from->threads.all[cell->thread];
	struct group group = {.tgid = thread->tgid,
			      .tid = groups->kind == GROUPS_THREADS ? thread->tid : 0};
	uint32_t number;

	if (intern_pair(&groups->table, &group, sizeof(group), &number) < 0) {
		groups->failed = true;
		return;
	}
	live_amount_add(&groups->all[number].now, cell->now);
	groups->all[number].born_us += cell->born_us;
}

/* The sums of @from by @kind, sorted by name. */
static int sum_up(struct groups *groups, const struct top_view *view, enum group_kind kind,
		  const struct holdings *from)
{
	int err;

	groups_release(groups);
	groups->of_kernel = from->of_kernel;
	groups->kind = groups->of_kernel && kind == GROUPS_THREADS ? GROUPS_PROCESSES : kind;
	for (size_t i = 0; i < from->cells.nr; i++)
		add_holding(groups, from, &from->cells.all[i]);
	if (groups->failed)
		return -ENOMEM;
	err = groups->of_kernel ? merge_origins(groups, view->leaks)
				: name_groups(groups, view->leaks);
	if (!err && groups->nr)
		qsort(groups->all, groups->nr, sizeof(*groups->all), compare_names);
	return err;
}

/* How fast @groups grew since what they were @before, both sorted by name. */
static void set_rates(struct groups *groups, const struct groups *before, uint64_t since_ns)
{
	for (size_t i = 0; i < groups->nr; i++) {
		struct group *group = &groups->all[i];
		const struct group *then = before->nr ? bsearch(group, before->all, before->nr,
								sizeof(*group), compare_names)
						      : NULL;
		int64_t grown = (int64_t)(group->now.bytes - (then ? then->now.bytes : 0));

		group->rate = (double)grown * 1e9 / (double)since_ns;
	}
	groups->rates = true;
}

int groups_fill(struct groups *groups, const struct top_view *view, enum group_kind kind,
		const struct holdings *now, const struct holdings *before)
{
	struct groups then = {0};
	int err = sum_up(groups, view, kind, now);

	for (size_t i = 0; !err && i < groups->nr; i++)
		groups->all[i].age_ns =
			holdings_age(now, groups->all[i].now, groups->all[i].born_us);
	if (!err && before && before->time_ns && before->known_ns < now->known_ns) {
		err = sum_up(&then, view, kind, before);
		if (!err)
			set_rates(groups, &then, now->known_ns - before->known_ns);
	}
	groups_release(&then);
	groups_sort(groups, TOP_BYTES);
	return err;
}

int group_threads(const struct group *group, enum group_kind kind, const struct top_view *view,
		  const struct holdings *holdings, bool *in)
{
	for (size_t i = 0; i < holdings->threads.nr; i++) {
		const struct holder_thread *thread = &holdings->threads.all[i];
		char *name;

		in[i] = thread->tgid == group->tgid &&
			(kind != GROUPS_THREADS || thread->tid == group->tid);
		if (!holdings->of_kernel)
			continue;
		/* several origins have one name */
		name = name_origin(view->leaks, kind, thread->tgid);
		if (!name)
			return -ENOMEM;
		in[i] = !strcmp(name, group->name);
		free(name);
	}
	return 0;
}

const char *groups_title(const struct groups *groups)
{
	static const char *const titles[GROUPS_NR] = {"process", "thread", "cache",
						      "control group"};

	return titles[groups->kind];
}

void groups_release(struct groups *groups)
{
	for (size_t i = 0; i < groups->nr; i++)
		free(groups->all[i].name);
	intern_release(&groups->table);
	*groups = (struct groups){0};
}
