/* tcmalloc_look.c - slabs, and what of them is free by now: see tcmalloc.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/heap/tcmalloc.h"

bool tcmalloc_same_span(const struct tcmalloc_span *a, const struct tcmalloc_span *b)
{
	return a->address == b->address && a->size == b->size && a->objects == b->objects &&
	       a->refcount == b->refcount && a->sizeclass == b->sizeclass &&
	       a->location == b->location;
}

bool tcmalloc_is_free(const struct tcmalloc_slab *slab, uint64_t i)
{
	return slab->free[i / 64] >> i % 64 & 1;
}

/* Follow the list of free objects of @span, whose bytes were read.  Returns how many are in it;
 * more than there can be if it leads elsewhere. */
static uint64_t follow_objects(struct tcmalloc_slab *slab, const struct tcmalloc_span *span,
			       uint64_t size)
{
	const uint64_t most = span->size / size;
	uint64_t nr = 0;

	for (uint64_t at = span->objects; at; nr++) {
		const uint64_t offset = at - span->address, i = offset / size;

		if (at < span->address || i >= most || offset % size || tcmalloc_is_free(slab, i))
			return UINT64_MAX;
		slab->free[i / 64] |= UINT64_C(1) << i % 64;
		at = heap_word(slab->bytes + offset);
	}
	return nr;
}

bool tcmalloc_read_slab(const struct heap_memory *m, struct pages *pages,
			struct tcmalloc_slab *slab, const struct tcmalloc_span *span, uint64_t size)
{
	memset(slab->free, 0, (span->size / size / 64 + 1) * 8);
	return !heap_memory_copy(m, pages, span->address, slab->bytes, (size_t)span->size) &&
	       follow_objects(slab, span, size) + span->refcount == span->size / size;
}

/* Looks at Spans of the last walk. */
struct look {
	struct tcmalloc *t;
	struct heap_memory *m;
	struct heap_list *list;
	struct pages *pages;
	struct tcmalloc_slab *slab;
};

/* Add what of @was, which is @is now, is free. */
static int look_at_objects(struct look *k, const struct tcmalloc_span *was,
			   const struct tcmalloc_span *is)
{
	const uint64_t size = k->t->sizes[was->sizeclass];
	int err = 0;

	/* one that leads elsewhere is just being changed: so far it is as it was read */
	tcmalloc_read_slab(k->m, k->pages, k->slab, is, size);
	for (uint64_t i = 0; i < was->size / size && !err; i++)
		if (tcmalloc_is_free(k->slab, i))
			err = heap_list_add(k->list,
					    &(struct heap_block){.address = was->address + i * size,
								 .size = size,
								 .state = MLK_HEAP_FREE});
	return err;
}

static int look_at_span(struct look *k, const struct tcmalloc_span *was, const uint8_t *bytes)
{
	struct tcmalloc_span is = {0};

	/* one that is gone is in a list of those, through its first word */
	if (tcmalloc_take_span(k->t, bytes, &is) && tcmalloc_same_span(was, &is))
		return 0;
	if (is.address != was->address || is.size != was->size || is.location ||
	    is.sizeclass != was->sizeclass)
		return heap_list_add(k->list, &(struct heap_block){.address = was->address,
								   .size = was->size,
								   .state = MLK_HEAP_FREE});
	return was->sizeclass ? look_at_objects(k, was, &is) : 0;
}

/* How many Spans from number @first on are near each other. */
static size_t count_near(const struct tcmalloc *t, size_t first)
{
	size_t behind = first + 1;

	while (behind < t->nr_spans &&
	       t->spans[behind].span - t->spans[first].span <= HEAP_WINDOW - TCMALLOC_SPAN)
		behind++;
	return behind - first;
}

static int look_at_spans(struct look *k)
{
	uint8_t bytes[HEAP_WINDOW];
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < k->t->nr_spans && !err; i += nr) {
		const struct tcmalloc_span *first = &k->t->spans[i];
		size_t len;

		nr = count_near(k->t, i);
		len = (size_t)(first[nr - 1].span - first->span) + TCMALLOC_SPAN;
		if (heap_memory_copy(k->m, k->pages, first->span, bytes, len))
			continue;
		for (size_t j = 0; j < nr && !err; j++)
			err = look_at_span(k, &first[j], bytes + (first[j].span - first->span));
	}
	return err;
}

int tcmalloc_look_at_free(struct tcmalloc *t, struct heap_memory *m, struct heap_list *list)
{
	struct look k = {.t = t, .m = m, .list = list};
	int err = -ENOMEM;

	k.pages = calloc(1, sizeof(*k.pages));
	k.slab = malloc(sizeof(*k.slab));
	if (k.pages && k.slab) {
		k.pages->fd = m->pagemap;
		err = look_at_spans(&k);
	}
	free(k.pages);
	free(k.slab);
	return err ? err : tcmalloc_look_at_caches(t, m, list);
}
