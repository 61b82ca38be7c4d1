/* tally.c - see tally.h; report/live/live.c has the rules at length */
#include "record/trace/tally.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>

#define PAGE_SIZE 4096u /* unmapping rounds up to it; x86-64 */

struct range {
	uint32_t tgid;
	bool part; /* cut out of a larger one, which lives on */
	uint64_t start, end;
	struct range *next; /* of struct taken */
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
	*range = (struct range){.tgid = like->tgid, .start = start, .end = end};
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
	t->allocs += found->start > old.start && found->end < old.end;
	err = put_range(t, &old, old.start, found->start);
	if (!err)
		err = put_range(t, &old, found->end, old.end);
	if (!err)
		*out = found;
	else
		free(found);
	return err ? err : 1;
}

/* What @event, ALLOC or UNMAP, is of. */
static struct range range_of(const struct mlk_event *event)
{
	struct range range = {.tgid = event->tgid, .start = event->addr};
	uint64_t end = event->addr + event->size;

	range.end = end;
	if (end < event->addr || (event->kind == MLK_UNMAP && end > UINT64_MAX - PAGE_SIZE))
		range.end = UINT64_MAX;
	else if (event->kind == MLK_UNMAP)
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
	t->allocs++;
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
		taken->frees += !old->part;
		t->frees += !old->part;
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
			t->allocs += r->part;
			err = put_range(t, r, r->start, r->end);
		}
	}
	if (taken)
		taken_free(taken);
	return err;
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

	if (t->taken && event->kind != MLK_RESTORE && event->kind != MLK_FORK && !nested)
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
