/* groups.c - see groups.h */
#include "report/top/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_block(void *arg, const struct live_block *block)
{
	struct groups *groups = arg;
	struct group group = {.tgid = groups->of_kernel ? block->origin : block->tgid,
			      .tid = groups->kind == GROUPS_THREADS ? block->tid : 0};
	uint32_t number;

	if (intern_pair(&groups->table, &group, sizeof(group), &number) < 0)
		groups->failed = true;
	else
		live_amount_add(&groups->all[number].now, sampling_amount(block));
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->now.bytes != y->now.bytes)
		return x->now.bytes > y->now.bytes ? -1 : 1;
	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
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

int groups_fill(struct groups *groups, const struct top_view *view, enum group_kind kind)
{
	int err;

	groups_release(groups);
	groups->of_kernel = mlk_reader_meta(view->trace)->of_kernel;
	groups->kind = groups->of_kernel && kind == GROUPS_THREADS ? GROUPS_PROCESSES : kind;
	live_each(view->leaks->live, add_block, groups);
	if (groups->failed)
		return -ENOMEM;
	err = groups->of_kernel ? merge_origins(groups, view->leaks)
				: name_groups(groups, view->leaks);
	if (groups->nr && !err)
		qsort(groups->all, groups->nr, sizeof(*groups->all), compare_groups);
	return err;
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
