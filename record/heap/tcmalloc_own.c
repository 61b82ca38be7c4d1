/* tcmalloc_own.c - Spans, and the memory that tcmalloc has for itself: see tcmalloc.h
 *
 * Spans, leaves and caches of threads have words of their own that point to blocks; so do Spans
 * that are gone.  These are in the list of what may be used again, or older pages still lead to
 * them.  What lies between those that are known is not taken for granted but in one page: it may be
 * memory that the program got from the system by itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/tcmalloc.h"

/* struct Span. */
#define SPAN_START   0
#define SPAN_LENGTH  8
#define SPAN_OBJECTS 32
#define SPAN_BITS    40

#define LAST_LOCATION 2
#define MOST_ADDRESS  (UINT64_C(1) << 47)
#define ALIGN	      16 /* of what is in its own memory */

/* ThreadCache::FreeList, one for each size. */
#define LIST_BYTES 32
#define LIST_SIZE  24

/* PageHeapAllocator: of so many bytes at a time. */
#define POOL_BYTES (UINT64_C(128) << 10)
#define MOST_FREED (1u << 22) /* things in all lists */

#define STACK_BYTES 264 /* struct StackTrace */

static bool is_anonymous(const struct mlk_range *range)
{
	return range && (!range->path[0] || range->path[0] == '[');
}

bool tcmalloc_take_span(const struct tcmalloc *t, const uint8_t *bytes, struct tcmalloc_span *s)
{
	const uint64_t start = heap_word(bytes + SPAN_START);
	const uint64_t length = heap_word(bytes + SPAN_LENGTH);
	const uint64_t bits = heap_word(bytes + SPAN_BITS);

	if (!start || !length || start > MOST_ADDRESS >> TCMALLOC_PAGE_SHIFT ||
	    length > (MOST_ADDRESS >> TCMALLOC_PAGE_SHIFT) - start)
		return false;
	*s = (struct tcmalloc_span){.address = start << TCMALLOC_PAGE_SHIFT,
				    .size = length << TCMALLOC_PAGE_SHIFT,
				    .objects = heap_word(bytes + SPAN_OBJECTS),
				    .refcount = bits & 0xffff,
				    .sizeclass = (uint8_t)(bits >> 16),
				    .location = bits >> 24 & 3,
				    .sample = bits >> 26 & 1};
	if (s->location > LAST_LOCATION || s->sizeclass >= t->nr_sizes)
		return false;
	/* nobody resets it in what is free */
	if (s->location)
		s->sizeclass = 0;
	return !s->sizeclass || s->size == t->slabs[s->sizeclass];
}

bool tcmalloc_read_span(const struct tcmalloc *t, const struct heap_memory *m, uint64_t span,
			struct tcmalloc_span *s)
{
	uint8_t bytes[TCMALLOC_SPAN];

	if (span % ALIGN || !is_anonymous(heap_memory_range(m, span)) ||
	    heap_memory_read_present(m, span, bytes, sizeof(bytes)) ||
	    !tcmalloc_take_span(t, bytes, s))
		return false;
	s->span = span;
	return true;
}

bool tcmalloc_may_be_leaf(const struct heap_memory *m, uint64_t leaf)
{
	const struct mlk_range *range = leaf % ALIGN ? NULL : heap_memory_range(m, leaf);

	return is_anonymous(range) && range->end - leaf >= TCMALLOC_LEAF_BYTES;
}

bool tcmalloc_is_cache(const struct tcmalloc *t, const struct heap_memory *m, uint64_t cache)
{
	uint8_t lists[LIST_BYTES * TCMALLOC_SIZES];
	uint32_t size;

	if (cache % 64 || !is_anonymous(heap_memory_range(m, cache)) ||
	    heap_memory_read_present(m, cache, lists, (size_t)LIST_BYTES * t->nr_sizes))
		return false;
	for (unsigned int i = 1; i < t->nr_sizes; i++) {
		memcpy(&size, lists + i * LIST_BYTES + LIST_SIZE, sizeof(size));
		if (size != t->sizes[i])
			return false;
	}
	return true;
}

int tcmalloc_add_own(struct tcmalloc *t, uint64_t address, uint64_t length)
{
	if (t->nr_own >= MLK_MAX_HEAP_ARENAS)
		return 0;
	if (grow_array(&t->own, t->nr_own, &t->room_own, sizeof(*t->own)))
		return -ENOMEM;
	t->own[t->nr_own++] = (struct mlk_heap_arena){address, length};
	return 0;
}

/* Does a block of @list lie in [@address, @end)? */
static bool has_block(const struct heap_list *list, uint64_t address, uint64_t end)
{
	const size_t at = heap_list_behind(list, address);

	return at < list->nr && list->v[at].address < end;
}

static int add_part(struct tcmalloc *t, const struct heap_list *list, uint64_t address,
		    uint64_t end)
{
	return has_block(list, address, end) ? 0 : tcmalloc_add_own(t, address, end - address);
}

/* Add the @nr Spans at @spans; what is between two of them that are near is of Spans, too. */
static int add_spans(struct tcmalloc *t, const struct heap_list *list, const uint64_t *spans,
		     size_t nr)
{
	uint64_t start = nr ? spans[0] : 0, end = start + TCMALLOC_SPAN;
	int err = 0;

	for (size_t i = 1; i < nr && !err; i++) {
		if (spans[i] > end + HEAP_PAGE) {
			err = add_part(t, list, start, end);
			start = spans[i];
		}
		end = spans[i] + TCMALLOC_SPAN;
	}
	return err || !nr ? err : add_part(t, list, start, end);
}

/* Is a Span of @spans, or a cache, in [@start, @end), a number of @bytes behind @start? */
static bool has_thing(const uint64_t *things, size_t nr, uint64_t bytes, uint64_t start,
		      uint64_t end)
{
	for (size_t i = 0; i < nr; i++)
		if (things[i] >= start && things[i] < end && (things[i] - start) % bytes == 0)
			return true;
	return false;
}

/* What is in the list of free things that begins at @first, @left of them at most. */
static int add_freed(struct tcmalloc *t, const struct heap_memory *m, const struct heap_list *list,
		     uint64_t first, uint64_t bytes, unsigned int *left)
{
	uint64_t run = 0, end = 0;
	int err = 0;

	for (; first && first % ALIGN == 0 && *left && !err; (*left)--) {
		uint64_t next;

		if (heap_memory_stopped(m) || !is_anonymous(heap_memory_range(m, first)) ||
		    heap_memory_read_present(m, first, &next, sizeof(next)))
			break;
		/* they mostly follow each other, one way or the other */
		if (first == end) {
			end += bytes;
		} else if (run && first + bytes == run) {
			run = first;
		} else {
			err = run ? add_part(t, list, run, end) : 0;
			run = first;
			end = first + bytes;
		}
		first = next;
	}
	return err || !run ? err : add_part(t, list, run, end);
}

/* What may be a PageHeapAllocator is at @pool: it is one if one of its things is where it must be.
 */
static int add_pool(struct tcmalloc *t, const struct heap_memory *m, const struct heap_list *list,
		    uint64_t pool, const uint64_t *spans, size_t nr, unsigned int *left)
{
	uint64_t words[3], start, bytes = 0;
	int err;

	if (heap_memory_read_present(m, pool, words, sizeof(words)) || words[1] >= POOL_BYTES ||
	    words[0] < POOL_BYTES)
		return 0;
	start = words[0] + words[1] - POOL_BYTES;
	if (has_thing(spans, nr, TCMALLOC_SPAN, start, words[0]))
		bytes = TCMALLOC_SPAN;
	else if (has_thing(t->caches, t->nr_caches, TCMALLOC_CACHE, start, words[0]))
		bytes = TCMALLOC_CACHE;
	if (!bytes || start % ALIGN || !is_anonymous(heap_memory_range(m, start)))
		return 0;
	err = add_part(t, list, start, words[0]);
	return err ? err : add_freed(t, m, list, words[2], bytes, left);
}

/* What is behind the last object of a slab has words of what was there before it was one. */
static int add_rest(struct tcmalloc *t, const struct tcmalloc_span *span)
{
	const uint64_t rest = span->size % t->sizes[span->sizeclass];

	return rest ? tcmalloc_add_own(t, span->address + span->size - rest, rest) : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct mlk_heap_arena *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Make one of those that overlap or follow each other. */
static void join_own(struct tcmalloc *t)
{
	size_t nr = 0;

	qsort(t->own, t->nr_own, sizeof(*t->own), by_address);
	for (size_t i = 0; i < t->nr_own; i++) {
		struct mlk_heap_arena *last = nr ? &t->own[nr - 1] : NULL;
		const uint64_t end = t->own[i].address + t->own[i].length;

		if (!last || t->own[i].address > last->address + last->length)
			t->own[nr++] = t->own[i];
		else if (end > last->address + last->length)
			last->length = end - last->address;
	}
	t->nr_own = nr;
}

int tcmalloc_find_own(struct tcmalloc *t, const struct heap_memory *m, uint64_t *spans, size_t nr,
		      const struct heap_list *list)
{
	unsigned int left = MOST_FREED;
	int err = tcmalloc_add_own(t, t->central, (uint64_t)t->nr_sizes * TCMALLOC_CENTRAL);

	for (size_t i = 0; i < t->nr_pools && !err; i++)
		err = add_pool(t, m, list, t->pools[i], spans, nr, &left);
	if (!err)
		err = add_spans(t, list, spans, nr);
	for (size_t i = 0; i < t->nr_caches && !err; i++)
		err = add_part(t, list, t->caches[i], t->caches[i] + TCMALLOC_CACHE);
	for (size_t i = 0; i < t->nr_spans && !err; i++)
		if (t->spans[i].sample && t->spans[i].objects % 8 == 0 &&
		    is_anonymous(heap_memory_range(m, t->spans[i].objects)))
			err = add_part(t, list, t->spans[i].objects,
				       t->spans[i].objects + STACK_BYTES);
	for (size_t i = 0; i < t->nr_spans && !err; i++)
		if (t->spans[i].sizeclass)
			err = add_rest(t, &t->spans[i]);
	if (!err)
		join_own(t);
	return err;
}

void tcmalloc_release(struct tcmalloc *t)
{
	free(t->caches);
	free(t->spans);
	free(t->own);
	*t = (struct tcmalloc){0};
}
