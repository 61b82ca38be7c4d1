/* pending.c - see pending.h */
#include "record/kernel/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "format/trace.h"

int pending_add(struct pending_list *list, const struct pending *p)
{
	if (grow_array(&list->v, list->nr, &list->room, sizeof(*list->v)))
		return -ENOMEM;
	list->v[list->nr] = *p;
	list->v[list->nr].order = list->nr;
	list->nr++;
	list->nr_users += p->user != NULL;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_block(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->alloc_ns != y->alloc_ns)
		return x->alloc_ns < y->alloc_ns ? -1 : 1;
	return x->kind == MLK_ALLOC ? -1 : y->kind == MLK_ALLOC;
}

/* An empty list has no memory before the first one. */
static void sort(struct pending_list *list, int (*compare)(const void *, const void *))
{
	if (list->nr)
		qsort(list->v, list->nr, sizeof(*list->v), compare);
}

void pending_drop_unseen(struct pending_list *list, uint64_t last_cut_ns, uint64_t cut_ns)
{
	const struct pending *block = NULL;

	sort(list, by_block);
	for (size_t i = 0; i < list->nr; i++) {
		struct pending *p = &list->v[i];

		if (p->kind == MLK_ALLOC)
			block = p;
		else if (p->alloc_ns >= last_cut_ns && p->alloc_ns < cut_ns)
			p->dropped = !block || block->alloc_ns != p->alloc_ns ||
				     (p->kind == MLK_FREE && block->addr != p->addr);
	}
}

int pending_write(struct pending_list *list, uint64_t until_ns,
		  int (*write)(void *arg, const struct pending *p), void *arg)
{
	size_t i, left = 0;
	int err = 0;

	list->nr_users = 0;
	sort(list, by_time);
	for (i = 0; !err && i < list->nr && list->v[i].time_ns < until_ns; i++) {
		if (!list->v[i].dropped)
			err = write(arg, &list->v[i]);
		free(list->v[i].user);
	}
	for (; i < list->nr; i++) {
		if (list->v[i].dropped) {
			free(list->v[i].user);
			continue;
		}
		list->nr_users += list->v[i].user != NULL;
		list->v[left++] = list->v[i];
	}
	list->nr = left;
	return err;
}

void pending_release(struct pending_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->v[i].user);
	free(list->v);
	memset(list, 0, sizeof(*list));
}
