/* tally.c - see tally.h; report/live/live.c has the rules at length */
#include "record/trace/tally.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>

#define PAGE_SIZE 4096u /* unmapping rounds up to it; x86-64 */

/* Does a range need memory? */
enum use { IN_USE, RESERVED, GIVEN_BACK };

struct range {
	uint32_t tgid;
	uint32_t tid;	  /* with time_ns: which mapping it is of */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	enum use use;
	bool part; /* cut out of a larger one, which lives on */
	uint64_t start, end;
	struct range *next; /* of struct taken, or of those that an event changes */
};

/* What a thread has released: its next event tells whether it gets that back. */
struct taken {
	uint32_t tgid, tid;
	uint64_t addr;
	bool mapped;
	uint64_t frees;	      /* that were counted for it */
	struct range *ranges; /* mapped: what was there */
};

/* Ranges that overlap are the same. */
static int compare_ranges(const void *one, const void *other)
{
	const struct range *a = one, *b = other;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	return a->end <= b->start ? -1 : a->start >= b->end;
}

/* Thread 0 is any of its process. */
static int compare_taken(const void *one, const void *other)
{
	const struct taken *a = one, *b = other;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (!a->tid || !b->tid || a->tid == b->tid)
		return 0;
	return a->tid < b->tid ? -1 : 1;
}

/* Take one that is like @key out of *@tree.  NULL: there is none; else the caller frees it. */
static void *take(void **tree, const void *key, int (*compare)(const void *, const void *))
{
	void **found = *tree ? tfind(key, tree, compare) : NULL, *item = found ? *found : NULL;

	if (item)
		tdelete(item, tree, compare);
	return item;
}

/* Note that [@start, @end) is mapped by the process of @like. */
static int put_range(struct tally *t, const struct range *like, uint64_t start, uint64_t end)
{
	struct range *range, **there;

	if (start >= end)
		return 0;
	range = malloc(sizeof(*range));
	if (!range)
		return -ENOMEM;
	*range = *like;
	range->start = start;
	range->end = end;
	range->part = false;
	range->next = NULL;
	there = tsearch(range, &t->ranges, compare_ranges);
	if (!there || *there != range)
		free(range);
	return there ? 0 : -ENOMEM;
}

/* Cut what @key covers out of one of the ranges that are there.  Returns 1 with what was cut out in
 * *@out, which the caller frees, 0 when none is left that overlaps, or -ENOMEM. */
static int cut(struct tally *t, const struct range *key, struct range **out)
{
	struct range *found = take(&t->ranges, key, compare_ranges);
	struct range old;
	int err;

	if (!found)
		return 0;
	old = *found;
	found->start = old.start > key->start ? old.start : key->start;
	found->end = old.end < key->end ? old.end : key->end;
	found->part = found->end - found->start < old.end - old.start;
	t->allocs += old.use == IN_USE && found->start > old.start && found->end < old.end;
	err = put_range(t, &old, old.start, found->start);
	if (!err)
		err = put_range(t, &old, found->end, old.end);
	if (!err)
		*out = found;
	else
		free(found);
	return err ? err : 1;
}

/* What @event, ALLOC, UNMAP or PAGES, is of. */
static struct range range_of(const struct mlk_event *event)
{
	struct range range = {.tgid = event->tgid,
			      .tid = event->tid,
			      .time_ns = event->time_ns,
			      .use = event->flags & MLK_EVENT_RESERVED ? RESERVED : IN_USE,
			      .start = event->addr};
	bool pages = event->kind != MLK_ALLOC;
	uint64_t end = event->addr + event->size;

	range.end = end;
	if (end < event->addr || (pages && end > UINT64_MAX - PAGE_SIZE))
		range.end = UINT64_MAX;
	else if (pages)
		range.end = (end + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	return range;
}

/* What lay there before is gone, and was not seen to be freed. */
static int on_map(struct tally *t, const struct mlk_event *event)
{
	struct range range = range_of(event), *old;
	int err;

	if (range.start >= range.end)
		return 0; /* no mapping is empty */
	while ((err = cut(t, &range, &old)) > 0)
		free(old);
	t->allocs += range.use == IN_USE;
	return err ? err : put_range(t, &range, range.start, range.end);
}

static void taken_free(void *item)
{
	struct taken *taken = item;
	struct range *range;

	while ((range = taken->ranges)) {
		taken->ranges = range->next;
		free(range);
	}
	free(taken);
}

static struct taken *find_taken(struct tally *t, uint32_t tgid, uint32_t tid)
{
	return take(&t->taken, &(struct taken){.tgid = tgid, .tid = tid}, compare_taken);
}

/* @event takes something away that the thread may get back.  *@out is valid until the next call. */
static int begin_taken(struct tally *t, const struct mlk_event *event, struct taken **out)
{
	struct taken *taken = calloc(1, sizeof(*taken));

	if (!taken)
		return -ENOMEM;
	*taken = (struct taken){.tgid = event->tgid,
				.tid = event->tid,
				.addr = event->addr,
				.mapped = event->kind == MLK_UNMAP};
	if (!tsearch(taken, &t->taken, compare_taken)) {
		free(taken);
		return -ENOMEM;
	}
	*out = taken;
	return 0;
}

static int on_release(struct tally *t, const struct mlk_event *event)
{
	struct taken *taken;
	int err = begin_taken(t, event, &taken);

	if (!err)
		t->frees += taken->frees = 1;
	return err;
}

static int on_unmap(struct tally *t, const struct mlk_event *event)
{
	struct range range = range_of(event), *old;
	struct taken *taken;
	int err = range.start < range.end ? begin_taken(t, event, &taken) : 0;

	if (err || range.start >= range.end)
		return err;
	while ((err = cut(t, &range, &old)) > 0) {
		old->next = taken->ranges;
		taken->ranges = old;
		taken->frees += old->use == IN_USE && !old->part;
		t->frees += old->use == IN_USE && !old->part;
	}
	return err;
}

/* What the thread has released lives.  A part of a mapping is a block of its own now. */
static int on_restore(struct tally *t, const struct mlk_event *event)
{
	struct taken *taken = find_taken(t, event->tgid, event->tid);
	int err = 0;

	if (taken && taken->addr == event->addr) {
		t->frees -= taken->frees;
		for (struct range *r = taken->ranges; r && !err; r = r->next) {
			t->allocs += r->use == IN_USE && r->part;
			err = put_range(t, r, r->start, r->end);
		}
	}
	if (taken)
		taken_free(taken);
	return err;
}

/* Take a range at @addr that is of the same mapping as @range, and in the same use, into it.
 * Returns whether there is one. */
static bool join_range(struct tally *t, uint64_t addr, struct range *range)
{
	const struct range key = {.tgid = range->tgid, .start = addr, .end = addr + 1};
	struct range **found = t->ranges ? tfind(&key, &t->ranges, compare_ranges) : NULL;
	struct range *there = found ? *found : NULL;

	if (!there || there->use != range->use || there->tid != range->tid ||
	    there->time_ns != range->time_ns)
		return false;
	tdelete(there, &t->ranges, compare_ranges);
	range->start = there->start < range->start ? there->start : range->start;
	range->end = there->end > range->end ? there->end : range->end;
	free(there);
	return true;
}

/* @range, which was in another use and is no longer there, is in @use from now on. */
static int change_range(struct tally *t, struct range range, enum use use)
{
	uint64_t end = range.end;
	int joined;

	t->frees += use != IN_USE && !range.part;
	range.use = use;
	joined = range.start && join_range(t, range.start - 1, &range);
	joined += end < UINT64_MAX && join_range(t, end, &range);
	if (use == IN_USE) {
		t->allocs += !joined;
		t->frees += joined == 2;
	}
	return put_range(t, &range, range.start, range.end);
}

/* Put @range into @list, in the order of addresses, the highest first. */
static void list_range(struct range **list, struct range *range)
{
	while (*list && (*list)->start > range->start)
		list = &(*list)->next;
	range->next = *list;
	*list = range;
}

/* Take what lies in @key out: into @changed what is in use @from, as far as it does; into @others
 * what is not. */
static int take_pages(struct tally *t, const struct range *key, enum use from,
		      struct range **changed, struct range **others)
{
	struct range **found, *range;
	int err = 0;

	while (err >= 0 && t->ranges && (found = tfind(key, &t->ranges, compare_ranges))) {
		range = *found;
		if (range->use != from) {
			tdelete(range, &t->ranges, compare_ranges);
			list_range(others, range);
			continue;
		}
		err = cut(t, key, &range);
		if (err > 0)
			list_range(changed, range);
	}
	return err < 0 ? err : 0;
}

/* What is in use @from of @key is in use @to from now on. */
static int change_use(struct tally *t, const struct range *key, enum use from, enum use to)
{
	struct range *changed = NULL, *others = NULL, *range;
	int err = key->start < key->end ? take_pages(t, key, from, &changed, &others) : 0;

	while ((range = others)) {
		others = range->next;
		err = err ? err : put_range(t, range, range->start, range->end);
		free(range);
	}
	while ((range = changed)) {
		changed = range->next;
		err = err ? err : change_range(t, *range, to);
		free(range);
	}
	return err;
}

static int on_pages(struct tally *t, const struct mlk_event *event)
{
	struct range range = range_of(event);

	switch (event->func) {
	case MLK_PAGES_ACCESSIBLE:
		return change_use(t, &range, RESERVED, IN_USE);
	case MLK_PAGES_GIVEN_BACK:
	case MLK_PAGES_LAZILY:
		return change_use(t, &range, IN_USE, GIVEN_BACK);
	case MLK_PAGES_RESIDENT:
		return change_use(t, &range, GIVEN_BACK, IN_USE);
	default:
		return 0;
	}
}

/* The program of @event's process is over.  What its threads were about to free at an exec was not
 * freed. */
static void forget(struct tally *t, const struct mlk_event *event)
{
	const struct range all = {.tgid = event->tgid, .end = UINT64_MAX};
	struct taken *taken;
	struct range *range;

	while ((range = take(&t->ranges, &all, compare_ranges)))
		free(range);
	while ((taken = find_taken(t, event->tgid, 0))) {
		if (event->kind == MLK_EXEC)
			t->frees -= taken->frees;
		taken_free(taken);
	}
}

/* The thread of @event went on: what it has released is not its any more.  A nested free is the
 * work of the realloc that is under way. */
static void settle(struct tally *t, const struct mlk_event *event)
{
	bool nested = event->kind == MLK_FREE && event->flags & MLK_EVENT_NESTED;
	struct taken *taken = NULL;

	if (t->taken && event->kind != MLK_RESTORE && event->kind != MLK_FORK &&
	    event->kind != MLK_PAGES && !nested)
		taken = find_taken(t, event->tgid, event->tid);
	if (taken)
		taken_free(taken);
}

int tally_note(struct tally *t, const struct mlk_event *event)
{
	settle(t, event);
	switch (event->kind) {
	case MLK_ALLOC:
		if (event->func == MLK_FUNC_MMAP || event->func == MLK_FUNC_MREMAP)
			return on_map(t, event);
		t->allocs++;
		return 0;
	case MLK_FREE:
		t->frees += !(event->flags & MLK_EVENT_NESTED);
		return 0;
	case MLK_RELEASE:
		return on_release(t, event);
	case MLK_RESTORE:
		return on_restore(t, event);
	case MLK_UNMAP:
		return on_unmap(t, event);
	case MLK_PAGES:
		return on_pages(t, event);
	case MLK_EXEC:
	case MLK_EXIT:
	case MLK_FORK:
		forget(t, event);
		return 0;
	default:
		return 0;
	}
}

void tally_release(struct tally *t)
{
	tdestroy(t->ranges, free);
	tdestroy(t->taken, taken_free);
	t->ranges = t->taken = NULL;
}
