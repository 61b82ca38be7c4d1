/* tcmalloc_walk.c - from Span to Span by the map of pages: see tcmalloc.h
 *
 * A Span begins where the one before ended, or where no memory was so far.  Elements of pages
 * inside of one may be from another that is gone, so they are passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/tcmalloc.h"

#define SUMMED	256 /* bytes of a block that are compared */
#define AGAIN	16  /* times that is read what cannot be so */
#define IN_PAGE (HEAP_PAGE / 8)

#define MOST_ELEMENTS (UINT64_C(1) << 30) /* that are looked at */

/* One walk. */
struct map_walk {
	struct tcmalloc *t;
	struct heap_memory *m;
	struct heap_list *list;
	struct pages *pages, *block_pages; /* of leaves, of blocks */
	struct tcmalloc_slab *slab;
	uint64_t behind; /* the end of the Span before */
	uint64_t left;	 /* elements that may still be looked at */
	uint64_t *spans; /* addresses of all that elements lead to */
	size_t nr_spans, room_spans;
};

static int add_free(struct map_walk *w, uint64_t address, uint64_t size)
{
	return heap_list_add(w->list, &(struct heap_block){.address = address,
							   .size = size,
							   .arena = HEAP_NO_ARENA,
							   .state = MLK_HEAP_FREE});
}

/* The first bytes of the block are at @bytes. */
static int add_used(struct map_walk *w, uint64_t address, uint64_t size, const uint8_t *bytes)
{
	const size_t summed = size < SUMMED ? (size_t)size : SUMMED;

	return heap_list_add(w->list,
			     &(struct heap_block){.address = address,
						  .size = size,
						  .words = {heap_word(bytes),
							    summed < 16 ? 0 : heap_word(bytes + 8)},
						  .sum = heap_sum(bytes, summed),
						  .arena = HEAP_NO_ARENA,
						  .state = MLK_HEAP_USED});
}

static int add_objects(struct map_walk *w, const struct tcmalloc_span *span, uint64_t size)
{
	int err = 0;

	for (uint64_t i = 0; i < span->size / size && !err; i++) {
		const uint64_t offset = i * size;

		err = tcmalloc_is_free(w->slab, i)
			      ? add_free(w, span->address + offset, size)
			      : add_used(w, span->address + offset, size, w->slab->bytes + offset);
	}
	return err;
}

static int keep_span(struct tcmalloc *t, const struct tcmalloc_span *span)
{
	if (grow_array(&t->spans, t->nr_spans, &t->room_spans, sizeof(*t->spans)))
		return -ENOMEM;
	t->spans[t->nr_spans++] = *span;
	return 0;
}

/* Read what is compared of the blocks of @span.  Returns whether it fits, and the Span did not
 * change meanwhile. */
static bool read_blocks(struct map_walk *w, const struct tcmalloc_span *span)
{
	struct tcmalloc_span again;

	if (span->location)
		return true;
	if (span->sizeclass
		    ? !tcmalloc_read_slab(w->m, w->block_pages, w->slab, span,
					  w->t->sizes[span->sizeclass])
		    : heap_memory_copy(w->m, w->block_pages, span->address, w->slab->bytes, SUMMED))
		return false;
	return tcmalloc_read_span(w->t, w->m, span->span, &again) &&
	       tcmalloc_same_span(span, &again);
}

/* Take the blocks of @span, which were read. */
static int take_span(struct map_walk *w, const struct tcmalloc_span *span)
{
	int err;

	if (span->location)
		return add_free(w, span->address, span->size);
	err = span->sizeclass ? add_objects(w, span, w->t->sizes[span->sizeclass])
			      : add_used(w, span->address, span->size, w->slab->bytes);
	return err ? err : keep_span(w->t, span);
}

/* Does @span, which the element at @at leads to, begin at @page, and does the element say so still?
 */
static bool is_span(const struct map_walk *w, const struct tcmalloc_span *span, uint64_t page,
		    uint64_t at)
{
	uint64_t again;

	return span->address == page && !heap_memory_read(w->m, at, &again, sizeof(again)) &&
	       again == span->span && heap_memory_range(w->m, page + span->size - 1);
}

/* The page at @page has the element at @at, which was @element. */
static int take_element(struct map_walk *w, uint64_t page, uint64_t at, uint64_t element)
{
	uint64_t unwalked = TCMALLOC_PAGE;

	for (int i = 0; i < AGAIN; i++) {
		struct tcmalloc_span span;

		if (i && heap_memory_read(w->m, at, &element, sizeof(element)))
			break;
		if (!element)
			return 0;
		if (!tcmalloc_read_span(w->t, w->m, element, &span) || !is_span(w, &span, page, at))
			continue;
		unwalked = span.size;
		if (!read_blocks(w, &span))
			continue;
		w->behind = page + span.size;
		return take_span(w, &span);
	}
	w->behind = page + unwalked;
	w->t->unwalked += unwalked;
	return 0;
}

/* An element leads to a Span at @span, maybe one that is gone. */
static int note_span(struct map_walk *w, uint64_t span)
{
	if (span % 16 || !heap_memory_range(w->m, span) ||
	    (w->nr_spans && w->spans[w->nr_spans - 1] == span))
		return 0;
	if (grow_array(&w->spans, w->nr_spans, &w->room_spans, sizeof(*w->spans)))
		return -ENOMEM;
	w->spans[w->nr_spans++] = span;
	return 0;
}

/* Elements of a leaf: of memory from @start on, those from @first on. */
struct elements {
	struct map_walk *w;
	uint64_t start, first;
};

/* Walk those in [@at, @end), which lie in one page. */
static int walk_elements(void *arg, uint64_t at, uint64_t end)
{
	const struct elements *of = arg;
	struct map_walk *w = of->w;
	uint64_t elements[IN_PAGE];
	const uint64_t start = of->start + (at - of->first) / 8 * TCMALLOC_PAGE;
	const size_t nr = (size_t)(end - at) / 8;
	int err = 0;

	if (heap_memory_stopped(w->m))
		return -ECANCELED;
	if (nr > w->left || heap_memory_read(w->m, at, elements, nr * 8)) {
		w->t->unwalked += nr * TCMALLOC_PAGE;
		return 0;
	}
	w->left -= nr;
	for (size_t i = 0; i < nr && !err; i++) {
		const uint64_t page = start + i * TCMALLOC_PAGE;

		if (elements[i])
			err = note_span(w, elements[i]);
		if (elements[i] && page >= w->behind && !err)
			err = take_element(w, page, at + 8 * i, elements[i]);
	}
	return err;
}

/* Memory from @start to @end has elements of the leaf at @leaf, of which pages that are not there
 * are zero. */
static int walk_leaf(struct map_walk *w, uint64_t start, uint64_t end, uint64_t leaf)
{
	struct elements of = {w, start, leaf + start / TCMALLOC_PAGE % TCMALLOC_LEAF_PAGES * 8};
	int err = pages_each(w->pages, of.first, of.first + (end - start) / TCMALLOC_PAGE * 8,
			     walk_elements, &of);

	if (err > 0)
		w->t->unwalked += end - start;
	return err > 0 ? 0 : err;
}

/* Walk through [@start, @end), by each leaf that there is for it. */
static int walk_range(struct map_walk *w, uint64_t start, uint64_t end)
{
	uint64_t next;
	int err = 0;

	for (; start < end && !err; start = next) {
		const uint64_t slot = start >> TCMALLOC_LEAF_SHIFT;
		uint64_t leaf;

		next = (slot + 1) << TCMALLOC_LEAF_SHIFT;
		next = next < end ? next : end;
		if (slot >= TCMALLOC_ROOT_NR ||
		    heap_memory_read_present(w->m, w->t->root + slot * 8, &leaf, sizeof(leaf)) ||
		    !leaf)
			continue;
		if (!tcmalloc_may_be_leaf(w->m, leaf)) {
			w->t->unwalked += TCMALLOC_PAGE; /* and how much more is not known */
			continue;
		}
		err = walk_leaf(w, start, next, leaf);
		if (!err && !(w->t->nr_own && w->t->own[w->t->nr_own - 1].address == leaf))
			err = tcmalloc_add_own(w->t, leaf, TCMALLOC_LEAF_BYTES);
	}
	return err;
}

static int walk_map(struct map_walk *w)
{
	int err = 0;

	for (size_t i = 0; i < w->m->nr && !err; i++) {
		const struct mlk_range *range = &w->m->ranges[i];

		if (!range->path[0] || range->path[0] == '[')
			err = walk_range(w,
					 (range->start + TCMALLOC_PAGE - 1) & ~(TCMALLOC_PAGE - 1),
					 range->end & ~(TCMALLOC_PAGE - 1));
	}
	return err;
}

static int by_span(const void *a, const void *b)
{
	const struct tcmalloc_span *x = a, *y = b;

	return (x->span > y->span) - (x->span < y->span);
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* List all that the map leads to. */
static int list_blocks(struct map_walk *w)
{
	struct tcmalloc *t = w->t;
	int err = -ENOMEM;

	w->pages = calloc(2, sizeof(*w->pages));
	w->slab = malloc(sizeof(*w->slab));
	if (w->pages && w->slab) {
		w->block_pages = w->pages + 1;
		w->pages->fd = w->block_pages->fd = w->m->pagemap;
		err = walk_map(w);
	}
	free(w->pages);
	free(w->slab);
	if (t->nr_spans)
		qsort(t->spans, t->nr_spans, sizeof(*t->spans), by_span);
	if (w->nr_spans)
		qsort(w->spans, w->nr_spans, sizeof(*w->spans), by_address);
	heap_list_sort(w->list);
	return err;
}

/* What is the allocator's own is no block. */
static int add_own_blocks(const struct tcmalloc *t, struct heap_list *list)
{
	int err = 0;

	for (size_t i = 0; i < t->nr_own && !err; i++)
		if (t->own[i].address != t->central)
			err = heap_list_add(list, &(struct heap_block){.address = t->own[i].address,
								       .size = t->own[i].length,
								       .arena = HEAP_NO_ARENA,
								       .state = MLK_HEAP_OWN});
	heap_list_sort(list);
	return err;
}

int tcmalloc_walk(struct tcmalloc *t, struct heap_memory *m, struct heap_list *list)
{
	struct map_walk w = {.t = t, .m = m, .list = list, .left = MOST_ELEMENTS};
	int err;

	list->nr = 0;
	t->unwalked = 0;
	t->nr_spans = t->nr_own = 0;
	err = list_blocks(&w);
	if (!err)
		err = tcmalloc_mark_cached(t, m, list);
	if (!err)
		err = tcmalloc_find_own(t, m, w.spans, w.nr_spans, list);
	if (!err)
		err = add_own_blocks(t, list);
	free(w.spans);
	return err;
}
