/* groups.c - see groups.h */
#include "report/top/screen/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_block(void *arg, const struct live_block *block)
{
	struct groups *groups = arg;
	struct group group = {.tgid = groups->of_kernel ? block->origin : block->tgid,
			      .tid = groups->threads ? block->tid : 0};
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

int groups_fill(struct groups *groups, const struct top_view *view, bool threads)
{
	groups_release(groups);
	groups->of_kernel = mlk_reader_meta(view->trace)->of_kernel;
	groups->threads = threads && !groups->of_kernel;
	live_each(view->leaks->live, add_block, groups);
	if (groups->nr)
		qsort(groups->all, groups->nr, sizeof(*groups->all), compare_groups);
	return groups->failed ? -ENOMEM : 0;
}

char *group_name(const struct groups *groups, const struct top_view *view,
		 const struct group *group)
{
	const struct replay *leaks = view->leaks;
	const struct origin *origin;
	const char *name;
	char *text;
	int len;

	if (groups->of_kernel) {
		origin = origins_get(&leaks->origins, group->tgid);
		if (!origin)
			return strdup("[not known]");
		len = asprintf(&text, "%s (%" PRIu32 ")", origin->process, origin->tgid);
		return len < 0 ? NULL : text;
	}
	if (!groups->threads)
		return processes_label(leaks->processes, group->tgid);
	name = thread_names_get(leaks->threads, group->tgid, group->tid);
	len = asprintf(&text, "%s (%" PRIu32 "/%" PRIu32 ")", name[0] ? name : "thread",
		       group->tgid, group->tid);
	return len < 0 ? NULL : text;
}

void groups_release(struct groups *groups)
{
	intern_release(&groups->table);
	*groups = (struct groups){0};
}
