/* tcmalloc_find.c - where tcmalloc has its map of pages, its sizes and its caches: see tcmalloc.h
 *
 * All is in the file's data.  The table of sizes is known by its numbers, the array of central
 * lists by the heads of its lists, of which those of size 0 point to themselves, and a thread's
 * cache by the sizes that it repeats.  The root of the map of pages is an array of 1 MiB, most of
 * it zero: an element leads to a leaf, that to a Span for each page.  A leaf is known by Spans of
 * the central lists.  What all its Spans say of their addresses must be where the root has the
 * element.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/heap/tcmalloc.h"

/* SizeMap: class_to_size_, between num_objects_to_move_ and class_to_pages_. */
#define SMALLEST   8
#define LARGEST	   (256u << 10) /* kMaxSize */
#define MOST_MOVED (64u << 10)	/* objects; at least one */
#define TABLE	   (4 * TCMALLOC_SIZES)

/* CentralFreeList; empty_ and nonempty_ are Spans. */
#define CENTRAL_CLASS	 8
#define CENTRAL_EMPTY	 16
#define CENTRAL_NONEMPTY 64
#define CENTRAL_HEAD	 112
#define SPAN_NEXT	 16
#define SPAN_PREV	 24

/* PageHeapAllocator. */
#define POOL_BYTES (128u << 10) /* kAllocIncrement */
#define POOL_FREE  16		/* free_list_ */

#define IN_PAGE	   (HEAP_PAGE / 8)
#define BEHIND	   4 /* words of the next page */
#define ENOUGH	   2 /* Spans that must fit, */
#define BAD_OF	   8 /* and at most one of so many may not: it may be changing */
#define AT_ONCE	   4 /* what is none has so many that do not */
#define SAMPLE	   4096
#define MOST_READ  (1u << 18) /* pages of what may be leaves, in all */
#define MOST_PAGES 65536      /* of the data */
#define MOST_TRIES (1u << 20) /* of what may be caches, or leaves */
#define SAMPLES	   8	      /* Spans that leaves are known by */

/* What is looked for in the data. */
struct search {
	struct tcmalloc *t;
	struct heap_memory *m;
	struct pages *pages, *leaf_pages;
	unsigned int read, tries;
	struct tcmalloc_span samples[SAMPLES];
	unsigned int nr_samples;
	/* the leaf that is looked at */
	uint64_t element;      /* where the root has it */
	uint64_t next;	       /* the page behind the Span before */
	unsigned int fit, bad; /* Spans */
};

/* A page of the data. */
struct data_page {
	uint64_t at;
	uint64_t words[IN_PAGE + BEHIND];
};

typedef bool (*search_fn)(struct search *s, const struct data_page *page);

/* Are there as many sizes as there can be, ascending, up to the largest? */
static bool take_sizes(struct tcmalloc *t, const uint32_t *sizes)
{
	unsigned int nr = 1;

	while (nr < TCMALLOC_SIZES && sizes[nr] > sizes[nr - 1] && sizes[nr] <= LARGEST &&
	       sizes[nr] % SMALLEST == 0)
		nr++;
	if (sizes[nr - 1] != LARGEST)
		return false;
	memcpy(t->sizes, sizes, nr * sizeof(*sizes));
	t->nr_sizes = nr;
	return true;
}

/* Do slabs of so many pages fit the sizes? At most an eighth is left over. */
static bool take_slabs(struct tcmalloc *t, const uint64_t *pages)
{
	for (unsigned int i = 1; i < t->nr_sizes; i++) {
		const uint64_t bytes = pages[i] * TCMALLOC_PAGE;

		if (!pages[i] || pages[i] > TCMALLOC_MOST_SLAB / TCMALLOC_PAGE ||
		    bytes < t->sizes[i] || bytes % t->sizes[i] > bytes / 8)
			return false;
		t->slabs[i] = (uint32_t)bytes;
	}
	return true;
}

static bool take_moves(struct tcmalloc *t, const uint32_t *moves)
{
	for (unsigned int i = 1; i < t->nr_sizes; i++)
		if (!moves[i] || moves[i] > MOST_MOVED)
			return false;
	memcpy(t->moves, moves, sizeof(t->moves));
	return true;
}

/* Is class_to_size_ at @at? */
static bool read_sizes(struct tcmalloc *t, const struct heap_memory *m, uint64_t at)
{
	uint32_t sizes[TCMALLOC_SIZES], moves[TCMALLOC_SIZES];
	uint64_t pages[TCMALLOC_SIZES];

	return at > t->from + TABLE && !heap_memory_read_present(m, at, sizes, sizeof(sizes)) &&
	       take_sizes(t, sizes) &&
	       !heap_memory_read_present(m, (at + TABLE + 7) & ~UINT64_C(7), pages,
					 sizeof(pages)) &&
	       take_slabs(t, pages) &&
	       !heap_memory_read_present(m, at - TABLE, moves, sizeof(moves)) &&
	       take_moves(t, moves);
}

static bool search_sizes(struct search *s, const struct data_page *page)
{
	const uint8_t *bytes = (const uint8_t *)page->words;

	for (unsigned int i = 0; i < HEAP_PAGE; i += 4) {
		uint32_t first[3];

		memcpy(first, bytes + i, sizeof(first));
		if (!first[0] && first[1] == SMALLEST && first[2] == 2 * SMALLEST &&
		    read_sizes(s->t, s->m, page->at + i))
			return true;
	}
	return false;
}

/* Is the central list of class @class at @at? */
static bool is_central(const struct heap_memory *m, uint64_t at, unsigned int class)
{
	uint8_t bytes[CENTRAL_HEAD];
	const uint8_t *empty = bytes + CENTRAL_EMPTY, *nonempty = bytes + CENTRAL_NONEMPTY;

	if (heap_memory_read_present(m, at, bytes, sizeof(bytes)) ||
	    heap_word(bytes + CENTRAL_CLASS) != class)
		return false;
	if (heap_word(empty) || heap_word(empty + 8) || heap_word(nonempty) ||
	    heap_word(nonempty + 8))
		return false;
	if (class)
		return heap_word(empty + SPAN_NEXT) && heap_word(empty + SPAN_PREV) &&
		       heap_word(nonempty + SPAN_NEXT) && heap_word(nonempty + SPAN_PREV);
	return heap_word(empty + SPAN_NEXT) == at + CENTRAL_EMPTY &&
	       heap_word(empty + SPAN_PREV) == at + CENTRAL_EMPTY &&
	       heap_word(nonempty + SPAN_NEXT) == at + CENTRAL_NONEMPTY &&
	       heap_word(nonempty + SPAN_PREV) == at + CENTRAL_NONEMPTY;
}

/* Keep the Span at @span, which a central list has, if it is one of that class. */
static void take_sample(struct search *s, uint64_t span, unsigned int class)
{
	if (s->nr_samples < SAMPLES &&
	    tcmalloc_read_span(s->t, s->m, span, &s->samples[s->nr_samples]) &&
	    s->samples[s->nr_samples].sizeclass == class)
		s->nr_samples++;
}

static void take_samples(struct search *s)
{
	static const unsigned int lists[] = {CENTRAL_EMPTY, CENTRAL_NONEMPTY};

	for (unsigned int i = 1; i < s->t->nr_sizes; i++)
		for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
			const uint64_t list =
				s->t->central + (uint64_t)i * TCMALLOC_CENTRAL + lists[k];
			uint64_t next;

			if (!heap_memory_read_present(s->m, list + SPAN_NEXT, &next,
						      sizeof(next)) &&
			    next != list)
				take_sample(s, next, i);
		}
}

/* Does the leaf at @leaf lead to one of the samples, where that must be? */
static bool has_sample(const struct search *s, uint64_t leaf)
{
	for (unsigned int i = 0; i < s->nr_samples; i++) {
		const uint64_t page = s->samples[i].address >> TCMALLOC_PAGE_SHIFT;
		uint64_t element;

		if (!heap_memory_read_present(s->m, leaf + page % TCMALLOC_LEAF_PAGES * 8, &element,
					      sizeof(element)) &&
		    element == s->samples[i].span)
			return true;
	}
	return false;
}

/* The word at @at points to its own list: is that the first one of the array? */
static void try_central(struct search *s, uint64_t at)
{
	const uint64_t first = at - CENTRAL_EMPTY - SPAN_NEXT;

	for (unsigned int i = 0; i < s->t->nr_sizes; i++)
		if (!is_central(s->m, first + (uint64_t)i * TCMALLOC_CENTRAL, i))
			return;
	s->t->central = first;
}

/* Is @i the number of a page in the leaf where @span begins, and the leaf where its element leads
 * to? The first one that fits says where the root is. */
static bool fits_leaf(struct search *s, const struct tcmalloc_span *span, uint64_t i)
{
	const uint64_t page = span->address >> TCMALLOC_PAGE_SHIFT;
	const uint64_t root = s->element - (span->address >> TCMALLOC_LEAF_SHIFT) * 8;

	if ((page & (TCMALLOC_LEAF_PAGES - 1)) != i || root < s->t->from ||
	    root > s->t->to - TCMALLOC_ROOT_BYTES)
		return false;
	if (!s->fit)
		s->t->root = root;
	return root == s->t->root;
}

static void prove_element(struct search *s, uint64_t element, uint64_t i)
{
	struct tcmalloc_span span;

	if (tcmalloc_read_span(s->t, s->m, element, &span) && fits_leaf(s, &span, i)) {
		s->next = i + span.size / TCMALLOC_PAGE;
		s->fit++;
	} else {
		s->bad++;
	}
}

/* Look at the elements in the page at @page of the leaf at @leaf. */
static void prove_page(struct search *s, uint64_t leaf, uint64_t page)
{
	uint64_t elements[IN_PAGE];

	if (heap_memory_read(s->m, page, elements, sizeof(elements)))
		return;
	for (unsigned int i = 0; i < IN_PAGE; i++) {
		const uint64_t at = page + UINT64_C(8) * i, nr = (at - leaf) / 8;

		/* what is inside of a Span may be from one that is gone */
		if (at >= leaf && nr < TCMALLOC_LEAF_PAGES && elements[i] && nr >= s->next)
			prove_element(s, elements[i], nr);
		if (s->bad >= AT_ONCE && !s->fit)
			return;
	}
}

/* Does the word at @at, which is @leaf, lead to a leaf of the map? */
static bool is_element(struct search *s, uint64_t at, uint64_t leaf)
{
	const uint64_t end =
		(leaf + TCMALLOC_LEAF_BYTES + HEAP_PAGE - 1) & ~(uint64_t)(HEAP_PAGE - 1);
	uint64_t from, to;

	s->element = at;
	s->next = s->fit = s->bad = 0;
	pages_begin(s->leaf_pages, leaf & ~(uint64_t)(HEAP_PAGE - 1));
	while (pages_next(s->leaf_pages, end, &from, &to) > 0)
		for (; from < to && s->fit + s->bad < SAMPLE; from += HEAP_PAGE) {
			if (heap_memory_stopped(s->m) || s->read++ >= MOST_READ)
				return false;
			prove_page(s, leaf, from);
			if (s->bad >= AT_ONCE && !s->fit)
				return false;
		}
	return s->fit >= ENOUGH && s->bad <= (s->fit + s->bad) / BAD_OF;
}

/* May @words be a PageHeapAllocator of Spans or caches: what was taken from its memory is a number
 * of these? */
static bool may_be_pool(const struct heap_memory *m, const uint64_t *words)
{
	const uint64_t taken = POOL_BYTES - words[1];

	return words[1] < POOL_BYTES &&
	       (taken % TCMALLOC_SPAN == 0 || taken % TCMALLOC_CACHE == 0) && words[0] > taken &&
	       heap_memory_range(m, words[0] - taken) &&
	       (!words[2] || heap_memory_range(m, words[2])) && words[3] && words[3] <= INT32_MAX;
}

static bool search_caches(struct search *s, const struct data_page *page)
{
	struct tcmalloc *t = s->t;

	for (unsigned int i = 0; i < IN_PAGE; i++) {
		const uint64_t word = page->words[i], at = page->at + UINT64_C(8) * i;

		if (!word || word % 8)
			continue;
		if (!t->central && word == at - SPAN_NEXT)
			try_central(s, at);
		if (word % 64 == 0 && t->nr_heads < TCMALLOC_HEADS && s->tries < MOST_TRIES) {
			s->tries++;
			if (tcmalloc_is_cache(t, s->m, word))
				t->heads[t->nr_heads++] = at;
		}
		if (t->nr_pools < TCMALLOC_POOLS && may_be_pool(s->m, page->words + i))
			t->pools[t->nr_pools++] = at;
	}
	return false;
}

/* One of the words that lead to a cache is the first one of those that are free: it may be of a
 * thread that has ended. */
static void drop_free_head(struct tcmalloc *t)
{
	size_t nr = 0;

	for (size_t i = 0; i < t->nr_heads; i++) {
		bool is_free = false;

		for (size_t k = 0; k < t->nr_pools; k++)
			is_free |= t->heads[i] == t->pools[k] + POOL_FREE;
		if (!is_free)
			t->heads[nr++] = t->heads[i];
	}
	t->nr_heads = nr;
}

static bool search_root(struct search *s, const struct data_page *page)
{
	for (unsigned int i = 0; i < IN_PAGE; i++) {
		const uint64_t word = page->words[i];

		if (word && tcmalloc_may_be_leaf(s->m, word) && s->tries++ < MOST_TRIES &&
		    has_sample(s, word) && is_element(s, page->at + UINT64_C(8) * i, word))
			return true;
	}
	return false;
}

/* Show each page of the data that is there to @look, until that has found all it wants.  Returns
 * whether it has. */
static bool search_data(struct search *s, search_fn look)
{
	struct data_page page;
	uint64_t from, to;
	unsigned int nr = 0;

	pages_begin(s->pages, s->t->from);
	while (pages_next(s->pages, s->t->to, &from, &to) > 0)
		for (; from < to; from += HEAP_PAGE) {
			if (heap_memory_stopped(s->m) || nr++ >= MOST_PAGES)
				return false;
			page.at = from;
			if (heap_memory_read(s->m, from, page.words, HEAP_PAGE))
				continue;
			if (heap_memory_read_present(s->m, from + HEAP_PAGE, page.words + IN_PAGE,
						     8 * BEHIND))
				memset(page.words + IN_PAGE, 0, 8 * BEHIND);
			if (look(s, &page))
				return true;
		}
	return false;
}

int tcmalloc_find(struct tcmalloc *t, struct heap_memory *m, uint64_t from, uint64_t to)
{
	struct pages *pages = calloc(2, sizeof(*pages));
	struct search s = {.t = t, .m = m};
	bool found = false;

	if (!pages)
		return -ENOMEM;
	pages[0].fd = pages[1].fd = m->pagemap;
	s.pages = &pages[0];
	s.leaf_pages = &pages[1];
	t->from = from & ~(uint64_t)(HEAP_PAGE - 1);
	t->to = to & ~(uint64_t)(HEAP_PAGE - 1);
	if (t->to > t->from && t->to - t->from >= TCMALLOC_ROOT_BYTES &&
	    search_data(&s, search_sizes)) {
		search_data(&s, search_caches);
		drop_free_head(t);
		if (t->central)
			take_samples(&s);
		s.tries = 0;
		found = s.nr_samples && t->nr_heads && search_data(&s, search_root);
	}
	free(pages);
	return found;
}
