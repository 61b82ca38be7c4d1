/* jemalloc_walk.c - from page to page of what is writable, by the tree of pages: see jemalloc.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/jemalloc.h"
#include "record/target/pages.h"

#define SUMMED	 256 /* bytes of a block that are compared */
#define AGAIN	 16  /* times that is read what cannot be so */
#define IN_PAGE	 (HEAP_PAGE / 8)
#define FARTHEST 512 /* times 2 MiB from the beginning of a base block */

#define MOST_ELEMENTS (UINT64_C(1) << 30) /* that are looked at */

/* Memory of blocks from @start to @end: zero where there is no page. */
struct contents {
	uint64_t start, end;
	uint8_t bytes[HEAP_WINDOW];
};

/* One walk. */
struct tree_walk {
	struct jemalloc *j;
	struct heap_memory *m;
	struct heap_list *list;
	struct pages *pages, *block_pages; /* of leaves, of blocks */
	struct contents *contents;
	uint64_t behind; /* the end of the extent before */
	uint64_t left;	 /* elements that may still be looked at */
};

/* Read what there is from @address on, up to the end of a page behind @end.  Returns whether it can
 * be read. */
static bool fill_contents(struct tree_walk *w, uint64_t address, uint64_t end)
{
	struct contents *c = w->contents;

	c->start = c->end = address & ~(uint64_t)(HEAP_PAGE - 1);
	end = (end + HEAP_PAGE - 1) & ~(uint64_t)(HEAP_PAGE - 1);
	end = end - c->start < HEAP_WINDOW ? end : c->start + HEAP_WINDOW;
	if (heap_memory_copy(w->m, w->block_pages, c->start, c->bytes, (size_t)(end - c->start)))
		return false;
	c->end = end;
	return true;
}

/* Read what of the block is compared.  More may be read up to @end.  Returns whether it can be
 * read. */
static bool read_contents(struct tree_walk *w, struct heap_block *block, uint64_t end)
{
	const size_t summed = block->size < SUMMED ? (size_t)block->size : SUMMED;
	const struct contents *c = w->contents;
	const uint8_t *bytes;

	if ((block->address < c->start || block->address + summed > c->end) &&
	    !fill_contents(w, block->address, end))
		return false;
	bytes = c->bytes + (block->address - c->start);
	block->words[0] = heap_word(bytes);
	block->words[1] = summed < 16 ? 0 : heap_word(bytes + 8);
	block->sum = heap_sum(bytes, summed);
	return true;
}

static int add_free(struct tree_walk *w, uint64_t address, uint64_t size)
{
	return heap_list_add(w->list, &(struct heap_block){.address = address,
							   .size = size,
							   .arena = HEAP_NO_ARENA,
							   .state = MLK_HEAP_FREE});
}

/* Other blocks lie behind it up to @end. */
static int add_used(struct tree_walk *w, uint64_t address, uint64_t size, uint64_t end)
{
	struct heap_block block = {
		.address = address, .size = size, .arena = HEAP_NO_ARENA, .state = MLK_HEAP_USED};

	if (!read_contents(w, &block, end)) {
		w->j->unwalked += size;
		return 0;
	}
	return heap_list_add(w->list, &block);
}

static bool is_free_region(const struct jemalloc_extent *e, uint64_t region)
{
	return e->free[region / 64] >> region % 64 & 1;
}

static int add_regions(struct tree_walk *w, const struct jemalloc_extent *e)
{
	int err = 0;

	w->contents->end = 0; /* it may be from before the bits were read */
	for (uint64_t i = 0; i < e->size / e->region && !err; i++) {
		uint64_t address = e->address + i * e->region;

		err = is_free_region(e, i) ? add_free(w, address, e->region)
					   : add_used(w, address, e->region, e->address + e->size);
	}
	return err;
}

static int add_large(struct tree_walk *w, const struct jemalloc_extent *e)
{
	w->contents->end = 0;
	return add_used(w, e->address, e->region,
			e->address + (e->region < SUMMED ? e->region : SUMMED));
}

static int keep_extent(struct jemalloc *j, const struct jemalloc_extent *e)
{
	if (grow_array(&j->extents, j->nr_extents, &j->room_extents, sizeof(*j->extents)))
		return -ENOMEM;
	j->extents[j->nr_extents++] = *e;
	return 0;
}

/* Take the extent @e, whose first page has an element. */
static int take_extent(struct tree_walk *w, const struct jemalloc_extent *e)
{
	int base = jemalloc_find_base(w->j, w->m, e->edata, FARTHEST), err;

	if (base < 0)
		return base;
	if (!base || (!e->state && !jemalloc_extent_fits(w->j, e))) {
		w->j->unwalked += e->size;
		return 0;
	}
	if (e->state)
		return add_free(w, e->address, e->size - e->address % HEAP_PAGE);
	err = e->slab ? add_regions(w, e) : add_large(w, e);
	return err ? err : keep_extent(w->j, e);
}

/* Does @e, which the element at @at leads to, begin at @page, and does the element say so, too? */
static bool is_extent(const struct tree_walk *w, const struct jemalloc_extent *e, uint64_t page,
		      uint64_t at, uint64_t element)
{
	uint64_t again;

	return (e->address & ~(uint64_t)(HEAP_PAGE - 1)) == page &&
	       (element >> 2 & 7) == e->state &&
	       (e->state || ((element & 1) == e->slab && element >> 48 == e->szind)) &&
	       !heap_memory_read(w->m, at, &again, sizeof(again)) && again == element &&
	       heap_memory_range(w->m, page + e->size - 1);
}

/* The page at @page has the element at @at, which was @element. */
static int take_element(struct tree_walk *w, uint64_t page, uint64_t at, uint64_t element)
{
	for (int i = 0; i < AGAIN; i++) {
		struct jemalloc_extent e;

		if (i && heap_memory_read(w->m, at, &element, sizeof(element)))
			break;
		if (!(element << 16))
			return 0;
		if (!jemalloc_read_extent(w->j, w->m, jemalloc_edata(element), &e) ||
		    !is_extent(w, &e, page, at, element))
			continue;
		w->behind = page + e.size;
		return take_extent(w, &e);
	}
	w->j->unwalked += HEAP_PAGE;
	return 0;
}

/* Elements of a leaf: of memory from @start on, those from @first on. */
struct elements {
	struct tree_walk *w;
	uint64_t start, first;
};

/* Walk those in [@at, @end), which lie in one page. */
static int walk_elements(void *arg, uint64_t at, uint64_t end)
{
	const struct elements *of = arg;
	struct tree_walk *w = of->w;
	uint64_t elements[IN_PAGE];
	const uint64_t start = of->start + (at - of->first) / 8 * HEAP_PAGE;
	const size_t nr = (size_t)(end - at) / 8;
	int err = 0;

	if (heap_memory_stopped(w->m))
		return -ECANCELED;
	if (nr > w->left || heap_memory_read(w->m, at, elements, nr * 8)) {
		w->j->unwalked += nr * HEAP_PAGE;
		return 0;
	}
	w->left -= nr;
	for (size_t i = 0; i < nr && !err; i++)
		if (elements[i] << 16 && start + i * HEAP_PAGE >= w->behind)
			err = take_element(w, start + i * HEAP_PAGE, at + 8 * i, elements[i]);
	return err;
}

/* Memory from @start to @end has elements of the leaf at @leaf, of which pages that are not there
 * are zero. */
static int walk_leaf(struct tree_walk *w, uint64_t start, uint64_t end, uint64_t leaf)
{
	struct elements of = {w, start, leaf + start / HEAP_PAGE % JEMALLOC_LEAF_PAGES * 8};
	int err = pages_each(w->pages, of.first, of.first + (end - start) / HEAP_PAGE * 8,
			     walk_elements, &of);

	if (err > 0)
		w->j->unwalked += end - start;
	return err > 0 ? 0 : err;
}

/* Walk through @range, by each leaf that there is for it. */
static int walk_range(struct tree_walk *w, const struct mlk_range *range)
{
	uint64_t at = range->start, end;
	int err = 0;

	for (; at < range->end && !err; at = end) {
		const uint64_t slot = at >> JEMALLOC_LEAF_SHIFT;
		uint64_t leaf;
		int base;

		end = (slot + 1) << JEMALLOC_LEAF_SHIFT;
		end = end < range->end ? end : range->end;
		if (slot >= JEMALLOC_ROOT_NR ||
		    heap_memory_read_present(w->m, w->j->root + slot * 8, &leaf, sizeof(leaf)) ||
		    !leaf)
			continue;
		base = leaf % 64 ? 0 : jemalloc_find_base(w->j, w->m, leaf, FARTHEST);
		if (base > 0)
			err = walk_leaf(w, at, end, leaf);
		else
			w->j->unwalked += HEAP_PAGE; /* and how much more is not known */
		err = base < 0 ? base : err;
	}
	return err;
}

static int by_edata(const void *a, const void *b)
{
	const struct jemalloc_extent *x = a, *y = b;

	return (x->edata > y->edata) - (x->edata < y->edata);
}

/* Base blocks and what is in them are the allocator's own. */
static int add_bases(struct jemalloc *j, struct heap_list *list)
{
	int err = 0;

	for (size_t i = 0; i < j->nr_bases && !err; i++) {
		const struct heap_block block = {.address = j->bases[i].address,
						 .size = j->bases[i].length,
						 .arena = HEAP_NO_ARENA,
						 .state = MLK_HEAP_OWN};

		err = jemalloc_add_own(j, block.address, block.size);
		if (!err)
			err = heap_list_add(list, &block);
	}
	return err;
}

static int walk_tree(struct tree_walk *w)
{
	int err = 0;

	for (size_t i = 0; i < w->m->nr && !err; i++)
		if (!w->m->ranges[i].path[0] || w->m->ranges[i].path[0] == '[')
			err = walk_range(w, &w->m->ranges[i]);
	return err;
}

/* List all that the tree leads to. */
static int list_blocks(struct tree_walk *w)
{
	struct jemalloc *j = w->j;
	int err = -ENOMEM;

	w->pages = calloc(2, sizeof(*w->pages));
	w->contents = calloc(1, sizeof(*w->contents));
	if (w->pages && w->contents) {
		w->block_pages = w->pages + 1;
		w->pages->fd = w->block_pages->fd = w->m->pagemap;
		err = walk_tree(w);
	}
	free(w->pages);
	free(w->contents);
	if (j->nr_extents)
		qsort(j->extents, j->nr_extents, sizeof(*j->extents), by_edata);
	heap_list_sort(w->list);
	return err;
}

int jemalloc_walk(struct jemalloc *j, struct heap_memory *m, struct heap_list *list)
{
	struct tree_walk w = {.j = j, .m = m, .list = list, .left = MOST_ELEMENTS};
	int err;

	list->nr = 0;
	j->unwalked = 0;
	j->nr_extents = j->nr_own = j->nr_bases = 0;
	err = list_blocks(&w);
	if (!err)
		err = jemalloc_mark_cached(j, m, list);
	if (!err)
		err = jemalloc_find_ended(j, m, list);
	/* last, as caches lead to more of them */
	if (!err)
		err = add_bases(j, list);
	if (!err)
		heap_list_sort(list);
	return err;
}

/* Add what of @was is free now. */
static int look_at_extent(const struct jemalloc *j, const struct jemalloc_extent *was,
			  const uint8_t *bytes, struct heap_list *list)
{
	struct heap_block block = {
		.address = was->address, .size = was->size, .state = MLK_HEAP_FREE};
	struct jemalloc_extent is;
	int err = 0;

	if (!jemalloc_take_extent(j, bytes, &is))
		return 0;
	if (is.state || is.address != was->address || is.slab != was->slab ||
	    is.region != was->region)
		return heap_list_add(list, &block);
	for (uint64_t i = 0; was->slab && i < was->size / was->region && !err; i++) {
		block.address = was->address + i * was->region;
		block.size = was->region;
		if (is_free_region(&is, i) && !is_free_region(was, i))
			err = heap_list_add(list, &block);
	}
	return err;
}

/* How many extents from number @first on have their structs near each other. */
static size_t count_near(const struct jemalloc *j, size_t first)
{
	size_t behind = first + 1;

	while (behind < j->nr_extents &&
	       j->extents[behind].edata - j->extents[first].edata <= HEAP_WINDOW - JEMALLOC_EDATA)
		behind++;
	return behind - first;
}

int jemalloc_look_at_free(struct jemalloc *j, struct heap_memory *m, struct heap_list *list)
{
	uint8_t bytes[HEAP_WINDOW];
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < j->nr_extents && !err; i += nr) {
		const struct jemalloc_extent *first = &j->extents[i];
		size_t len;

		nr = count_near(j, i);
		len = (size_t)(first[nr - 1].edata - first->edata) + JEMALLOC_EDATA;
		if (heap_memory_read(m, first->edata, bytes, len))
			continue;
		for (size_t k = 0; k < nr && !err; k++)
			err = look_at_extent(j, &first[k], bytes + (first[k].edata - first->edata),
					     list);
	}
	return err ? err : jemalloc_look_at_caches(j, m, list);
}
