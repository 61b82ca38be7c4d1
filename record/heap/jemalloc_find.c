/* jemalloc_find.c - where jemalloc has its tree of pages: see jemalloc.h
 *
 * The root is an array of 2 MiB in the file's data, most of it zero.  An element leads to a leaf
 * for 1 GiB of memory, that to a struct edata_s for each of its pages, and that says which page it
 * is.  So what the pages say of themselves must be where the root has its element.
 */
#include <errno.h>
#include <stdlib.h>

#include "record/heap/jemalloc.h"
#include "record/target/pages.h"

#define PAGE_SHIFT   12
#define LEAF_BYTES   (UINT64_C(8) * JEMALLOC_LEAF_PAGES)
#define LEAF_ALIGN   64
#define IN_PAGE	     (HEAP_PAGE / 8) /* elements */
#define ENOUGH	     4		     /* pages that must fit, */
#define BAD_OF	     8		     /* and at most one of so many may not: it may be changing */
#define SAMPLE	     4096	     /* pages that are looked at */
#define MOST_READ    (1u << 20)	     /* pages of what may be leaves, in all */
#define NEAR_BASE    16		     /* times 2 MiB from the beginning of a base block to a leaf */
#define FAR_BASE     512	     /* the same, to any other leaf */
#define BASE_SHIFT   21
#define MISSES	     1024
#define MOST_PAGES   65536 /* of the data */
#define LG_QUANTUM   4	   /* usually; redis builds its own with 3 */
#define MOST_LG_SIZE 46

/* What the pages of a leaf say. */
struct proof {
	struct jemalloc *j;
	struct heap_memory *m;
	struct pages *pages;
	uint64_t element;      /* where the root has the element that leads to the leaf */
	unsigned int fit, bad; /* pages */
	unsigned int sizes, sizes_bad;
	unsigned int read;	 /* pages of leaves */
	uint64_t misses[MISSES]; /* where no base block is, in 2 MiB */
};

/* The sizes of all classes: four between each power of two and the next, of multiples of a quantum,
 * and smaller powers of two. */
static void fill_sizes(struct jemalloc *j, unsigned int lg_quantum)
{
	j->nr_sizes = 0;
	for (unsigned int lg = 3; lg < lg_quantum; lg++)
		j->sizes[j->nr_sizes++] = UINT64_C(1) << lg;
	for (unsigned int i = 1; i <= 4; i++)
		j->sizes[j->nr_sizes++] = (uint64_t)i << lg_quantum;
	for (unsigned int lg = lg_quantum + 2; lg < MOST_LG_SIZE; lg++)
		for (unsigned int i = 1; i <= 4; i++)
			j->sizes[j->nr_sizes++] = (UINT64_C(1) << lg) + ((uint64_t)i << (lg - 2));
}

/* Is page @page of the leaf one of @e, and the leaf where its element leads to? */
static bool is_page_of(const struct proof *p, const struct jemalloc_extent *e, uint64_t page)
{
	const uint64_t first = e->address >> PAGE_SHIFT, nr = e->size >> PAGE_SHIFT;
	const uint64_t offset = (page - first) & (JEMALLOC_LEAF_PAGES - 1);
	const uint64_t slot = (first + offset) >> (JEMALLOC_LEAF_SHIFT - PAGE_SHIFT);

	/* of what is no slab, the first page and the last one have elements */
	return offset < nr && (e->slab || !offset || offset == nr - 1) &&
	       p->element - slot * 8 == p->j->root;
}

static void prove_page(struct proof *p, uint64_t element, uint64_t page)
{
	struct jemalloc *j = p->j;
	struct jemalloc_extent e;

	if (!jemalloc_read_extent(j, p->m, jemalloc_edata(element), &e)) {
		p->bad++;
		return;
	}
	if (!p->fit && !p->bad)
		j->root = p->element - (e.address >> JEMALLOC_LEAF_SHIFT) * 8;
	if (!is_page_of(p, &e, page) || j->root < j->from || j->root > j->to - JEMALLOC_ROOT_BYTES)
		p->bad++;
	else
		p->fit++;
	if (!e.state) {
		p->sizes++;
		p->sizes_bad += !jemalloc_extent_fits(j, &e);
	}
}

static bool is_enough(unsigned int all, unsigned int bad)
{
	return all >= ENOUGH && bad <= all / BAD_OF;
}

/* Look at pages of the leaf at @leaf. */
static int prove_leaf(struct proof *p, uint64_t leaf)
{
	const uint64_t end = (leaf + LEAF_BYTES + HEAP_PAGE - 1) & ~(uint64_t)(HEAP_PAGE - 1);
	uint64_t from, to, elements[IN_PAGE];
	int more;

	p->fit = p->bad = p->sizes = p->sizes_bad = 0;
	pages_begin(p->pages, leaf & ~(uint64_t)(HEAP_PAGE - 1));
	while ((more = pages_next(p->pages, end, &from, &to)) > 0)
		for (; from < to; from += HEAP_PAGE) {
			if (heap_memory_stopped(p->m) || p->fit + p->bad > SAMPLE ||
			    p->read++ >= MOST_READ)
				return 0;
			if (heap_memory_read(p->m, from, elements, sizeof(elements)))
				continue;
			for (unsigned int i = 0; i < IN_PAGE; i++) {
				uint64_t at = from + UINT64_C(8) * i;

				if (at >= leaf && at < leaf + LEAF_BYTES && elements[i] << 16)
					prove_page(p, elements[i], (at - leaf) / 8);
			}
			/* what is none is so at once */
			if (p->bad >= ENOUGH && !p->fit)
				return 0;
		}
	return more;
}

/* Is there room for a leaf at @leaf, in memory of no file? */
static bool has_room(const struct proof *p, uint64_t leaf)
{
	const struct mlk_range *range = leaf % LEAF_ALIGN ? NULL : heap_memory_range(p->m, leaf);

	return range && !range->path[0] && range->end - leaf >= LEAF_BYTES;
}

/* Can a leaf be at @leaf? It lies in a base block.  Many words of a program may point to where none
 * is. */
static bool may_be_leaf(struct proof *p, uint64_t leaf)
{
	uint64_t *miss = &p->misses[(leaf >> BASE_SHIFT) % MISSES];

	if (*miss == leaf >> BASE_SHIFT || !has_room(p, leaf))
		return false;
	if (jemalloc_find_base(p->j, p->m, leaf, NEAR_BASE) > 0)
		return true;
	*miss = leaf >> BASE_SHIFT;
	return false;
}

/* Does the word at @at, which is @leaf, lead to a leaf of the tree? */
static bool is_element(struct proof *p, uint64_t at, uint64_t leaf)
{
	static const unsigned int quanta[] = {LG_QUANTUM, 3};

	if (!may_be_leaf(p, leaf))
		return false;
	p->element = at;
	for (size_t i = 0; i < sizeof(quanta) / sizeof(*quanta); i++) {
		fill_sizes(p->j, quanta[i]);
		if (prove_leaf(p, leaf) || !p->fit)
			return false;
		if (is_enough(p->fit + p->bad, p->bad) && is_enough(p->sizes, p->sizes_bad))
			return true;
	}
	return false;
}

/* Are all elements in the page at @page, as far as it is the root's, zero or such that they may
 * lead to leaves? */
static bool is_page_of_root(const struct proof *p, uint64_t page)
{
	uint64_t words[IN_PAGE];

	if (heap_memory_read(p->m, page, words, sizeof(words)))
		return false;
	for (unsigned int i = 0; i < IN_PAGE; i++) {
		const uint64_t offset = page + UINT64_C(8) * i - p->j->root;

		if (offset < JEMALLOC_ROOT_BYTES && words[i] &&
		    (!has_room(p, words[i]) ||
		     jemalloc_find_base(p->j, p->m, words[i], FAR_BASE) <= 0))
			return false;
	}
	return true;
}

/* Is the root that was found one? The cache of a thread points to a leaf, too, but there are other
 * words beside it. */
static bool is_root(struct proof *p)
{
	const uint64_t root = p->j->root & ~(uint64_t)(HEAP_PAGE - 1);
	uint64_t from, to;
	bool is = true;

	pages_begin(p->pages, root);
	while (is && pages_next(p->pages, root + JEMALLOC_ROOT_BYTES + HEAP_PAGE, &from, &to) > 0)
		for (; is && from < to; from += HEAP_PAGE)
			is = is_page_of_root(p, from);
	return is;
}

/* Look for an element of the root in the page at @page. */
static bool search_page(struct proof *p, uint64_t page)
{
	uint64_t words[IN_PAGE];

	if (heap_memory_read(p->m, page, words, sizeof(words)))
		return false;
	for (unsigned int i = 0; i < IN_PAGE; i++)
		if (words[i] && is_element(p, page + UINT64_C(8) * i, words[i]) && is_root(p))
			return true;
	return false;
}

static bool search_data(struct proof *p, struct pages *pages)
{
	uint64_t from, to;
	unsigned int nr = 0;

	pages_begin(pages, p->j->from);
	while (pages_next(pages, p->j->to, &from, &to) > 0)
		for (; from < to; from += HEAP_PAGE) {
			if (heap_memory_stopped(p->m) || nr++ >= MOST_PAGES)
				return false;
			if (search_page(p, from))
				return true;
		}
	return false;
}

int jemalloc_find(struct jemalloc *j, struct heap_memory *m, uint64_t from, uint64_t to)
{
	struct pages *pages = calloc(2, sizeof(*pages));
	struct proof p = {.j = j, .m = m};
	bool found = false;

	if (!pages)
		return -ENOMEM;
	pages[0].fd = pages[1].fd = m->pagemap;
	p.pages = &pages[1];
	j->from = from & ~(uint64_t)(HEAP_PAGE - 1);
	j->to = to & ~(uint64_t)(HEAP_PAGE - 1);
	if (j->to > j->from && j->to - j->from >= JEMALLOC_ROOT_BYTES)
		found = search_data(&p, &pages[0]);
	free(pages);
	return found;
}
