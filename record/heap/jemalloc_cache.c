/* jemalloc_cache.c - blocks in the caches of threads, which the slabs take for used: see jemalloc.h
 *
 * An arena lists its caches.  A cache and what is behind it in the list point to each other, and
 * both to the arena.  Each has a stack of pointers for each size; all stacks of a cache lie in one
 * block, with a mark at each end.  A block that has such a mark and is no cache's is one that is
 * being made: what it points to is not judged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/jemalloc.h"
#include "record/target/pages.h"

/* struct tcache_slow_s, in words; the first one is link.qre_next. */
#define SLOW_BINS  4
#define SLOW_ARENA 5
#define SLOW_WORDS 6

/* struct cache_bin_s, behind the pointer to tcache_slow_s. */
#define BIN_BYTES 24
#define BIN_FULL  18
#define BIN_EMPTY 20
#define MOST_BINS 76

#define MARK_BEHIND UINT64_C(0xa7a7a7a7a7a7a7a7) /* cache_bin_trailing_junk */

#define IN_PAGE	    (HEAP_PAGE / 8)
#define ARENA_BYTES (32u << 10) /* of an arena, in which the list begins */
#define MOST_ARENAS 4096
#define MOST_TRIES  4096 /* of what may be arenas, until one has the list */
#define MOST_CACHES 65536
#define MOST_STACK  8192 /* pointers of one size */
#define TRIES	    8
#define LINE	    64

/* Takes the block at @address, of class @szind, which is in a cache. */
typedef int (*cached_fn)(void *arg, const struct jemalloc *j, uint64_t address, size_t szind);

/* A cache, as it was read. */
struct cache {
	uint64_t stack;		   /* the block with its stacks */
	uint64_t heads[MOST_BINS]; /* the first pointer of each, */
	uint64_t ends[MOST_BINS];  /* behind the last one */
	size_t nr;
};

/* Does the tcache_slow_s at @slow belong to @arena? *@bins are its bins, *@next the one behind. */
static bool is_slow(const struct heap_memory *m, uint64_t slow, uint64_t arena, uint64_t *bins,
		    uint64_t *next)
{
	uint64_t words[SLOW_WORDS], back;

	if (!slow || slow % 8 || !heap_memory_range(m, slow) ||
	    heap_memory_read_present(m, slow, words, sizeof(words)) || words[SLOW_ARENA] != arena ||
	    words[SLOW_BINS] % 8 ||
	    heap_memory_read_present(m, words[SLOW_BINS] - 8, &back, sizeof(back)))
		return false;
	*bins = words[SLOW_BINS];
	*next = words[0];
	return back == slow;
}

/* Bin @i, whose stack begins at @low, in @bytes.  Returns whether it fits. */
static bool take_bin(struct cache *c, size_t i, uint64_t low, const uint8_t *bytes)
{
	const uint64_t head = heap_word(bytes);
	uint16_t empty;

	memcpy(&empty, bytes + BIN_EMPTY, sizeof(empty));
	c->heads[i] = head;
	c->ends[i] = head + (uint16_t)(empty - (uint16_t)head);
	return head % 8 == 0 && head >= low && c->ends[i] % 8 == 0 && c->ends[i] > low &&
	       (c->ends[i] - low) / 8 <= MOST_STACK;
}

/* Where the block with all stacks begins, by the first bin. */
static uint64_t stack_of(const uint8_t *bytes)
{
	const uint64_t head = heap_word(bytes);
	uint16_t full;

	memcpy(&full, bytes + BIN_FULL, sizeof(full));
	return head - (uint16_t)((uint16_t)head - full) - 8;
}

/* Read the cache with the bins at @bins.  Returns whether it can be one: the stacks follow each
 * other between the marks. */
static bool read_cache(const struct heap_memory *m, uint64_t bins, struct cache *c)
{
	const struct mlk_range *range = heap_memory_range(m, bins);
	uint8_t bytes[MOST_BINS * BIN_BYTES];
	uint64_t len = range ? (range->end - bins) / BIN_BYTES * BIN_BYTES : 0, mark, low;

	len = len < sizeof(bytes) ? len : sizeof(bytes);
	if (len < BIN_BYTES || heap_memory_read_present(m, bins, bytes, (size_t)len))
		return false;
	c->stack = stack_of(bytes);
	if (c->stack % HEAP_PAGE || heap_memory_read_present(m, c->stack, &mark, sizeof(mark)) ||
	    mark != JEMALLOC_MARK_BEFORE)
		return false;
	low = c->stack + 8;
	for (c->nr = 0; c->nr < len / BIN_BYTES; low = c->ends[c->nr++]) {
		if (c->nr && !heap_memory_read_present(m, low, &mark, sizeof(mark)) &&
		    mark == MARK_BEHIND)
			return true;
		if (!take_bin(c, c->nr, low, bytes + c->nr * BIN_BYTES))
			return false;
	}
	return false;
}

/* Who wants to know of all caches. */
struct visitor {
	const struct jemalloc *j;
	const struct heap_memory *m;
	int (*each)(void *arg, const struct cache *cache); /* NULL: nobody */
	cached_fn cached;				   /* of what is in it, behind that */
	void *arg;
	unsigned int left; /* caches that are still looked at */
};

static int visit_cached(const struct visitor *v, const struct cache *c)
{
	uint64_t pointers[MOST_STACK];
	int err = 0;

	for (size_t i = 0; i < c->nr && i < v->j->nr_sizes; i++) {
		const size_t nr = (size_t)(c->ends[i] - c->heads[i]) / 8;

		/* they were all written once */
		if (heap_memory_read(v->m, c->heads[i], pointers, nr * 8))
			continue;
		for (size_t k = 0; k < nr && !err; k++)
			err = v->cached(v->arg, v->j, pointers[k], i);
	}
	return err;
}

/* Visit all caches of the @arena.  One that cannot be a cache is read again. */
static int visit_arena(struct visitor *v, uint64_t arena)
{
	uint64_t first, slow, bins, next;
	struct cache cache;
	int err = 0;

	if (heap_memory_read_present(v->m, arena + v->j->lists, &first, sizeof(first)))
		return 0;
	for (slow = first; v->left && is_slow(v->m, slow, arena, &bins, &next); slow = next) {
		bool is = false;

		v->left--;
		for (int try = 0; !is && try < TRIES; try++)
			is = read_cache(v->m, bins, &cache);
		if (is && v->each)
			err = v->each(v->arg, &cache);
		if (is && !err)
			err = visit_cached(v, &cache);
		if (err || next == first || heap_memory_stopped(v->m))
			break;
	}
	return err;
}

/* Visit the caches of all arenas.  Returns as the visitor's functions. */
static int visit_all(struct visitor *v)
{
	int err = 0;

	v->left = MOST_CACHES;
	for (size_t i = 0; i < v->j->nr_arenas && !err; i++)
		err = visit_arena(v, v->j->arenas[i]);
	return err;
}

/* Does @arena list caches at @lists? */
static bool has_list(const struct heap_memory *m, uint64_t arena, uint64_t lists)
{
	uint64_t first, bins, next;

	return !heap_memory_read_present(m, arena + lists, &first, sizeof(first)) &&
	       is_slow(m, first, arena, &bins, &next);
}

/* Where the arena that may be at @arena has its list; 0: nowhere. */
static uint64_t find_list(const struct heap_memory *m, uint64_t arena)
{
	uint64_t words[IN_PAGE], bins, next, page = arena & ~(uint64_t)(HEAP_PAGE - 1);

	for (; page < arena + ARENA_BYTES; page += HEAP_PAGE) {
		if (heap_memory_read_present(m, page, words, sizeof(words)))
			continue;
		for (unsigned int i = 0; i < IN_PAGE; i++) {
			uint64_t at = page + UINT64_C(8) * i;

			if (at > arena && is_slow(m, words[i], arena, &bins, &next))
				return at - arena;
		}
	}
	return 0;
}

/* The word of the file's data @word may be the address of an arena. */
static int take_arena(struct jemalloc *j, struct heap_memory *m, uint64_t word)
{
	int base = word && word % LINE == 0 ? jemalloc_find_base(j, m, word, 1) : 0;

	if (base <= 0)
		return base;
	if (!j->lists && j->tries++ < MOST_TRIES)
		j->lists = find_list(m, word);
	if (!j->lists || !has_list(m, word, j->lists) || j->nr_arenas >= MOST_ARENAS)
		return 0;
	for (size_t i = 0; i < j->nr_arenas; i++)
		if (j->arenas[i] == word)
			return 0;
	if (grow_array(&j->arenas, j->nr_arenas, &j->room_arenas, sizeof(*j->arenas)))
		return -ENOMEM;
	j->arenas[j->nr_arenas++] = word;
	return 0;
}

/* The file's data points to all arenas. */
static int find_arenas(struct jemalloc *j, struct heap_memory *m)
{
	struct pages *pages = calloc(1, sizeof(*pages));
	uint64_t from, to, words[IN_PAGE];
	int err = 0;

	if (!pages)
		return -ENOMEM;
	pages->fd = m->pagemap;
	j->nr_arenas = j->tries = 0;
	pages_begin(pages, j->from);
	while (!err && !heap_memory_stopped(m) && pages_next(pages, j->to, &from, &to) > 0)
		for (; from < to && !err; from += HEAP_PAGE) {
			if (heap_memory_read_present(m, from, words, sizeof(words)))
				continue;
			for (unsigned int i = 0; i < IN_PAGE && !err; i++)
				err = take_arena(j, m, words[i]);
		}
	free(pages);
	return err;
}

/* The rest of jemalloc_mark_cached(). */
struct marking {
	struct jemalloc *j;
	struct heap_list *list;
	size_t caches, stacks;
};

static int mark_stack(void *arg, const struct cache *cache)
{
	struct marking *k = arg;
	struct heap_block *block = heap_list_find(k->list, cache->stack);

	k->caches++;
	k->j->stack_bytes = cache->ends[cache->nr - 1] + 8 - cache->stack;
	if (!block || block->state != MLK_HEAP_USED)
		return 0;
	block->state = MLK_HEAP_OWN;
	block->words[0] = 0;
	return jemalloc_add_own(k->j, block->address, block->size);
}

static int mark_block(void *arg, const struct jemalloc *j, uint64_t address, size_t szind)
{
	struct marking *k = arg;
	struct heap_block *block = heap_list_find(k->list, address);

	if (block && block->size == j->sizes[szind] && block->state == MLK_HEAP_USED)
		block->state = MLK_HEAP_CACHED;
	return 0;
}

/* Visit each word of the block @stack, until one is @last; 0: no word is.  Returns whether it came
 * to that. */
static bool visit_words(struct marking *k, const struct heap_memory *m,
			const struct heap_block *stack, uint64_t last)
{
	uint64_t words[IN_PAGE];

	for (uint64_t at = 0; at + sizeof(words) <= stack->size; at += sizeof(words)) {
		if (heap_memory_read_present(m, stack->address + at, words, sizeof(words)))
			continue;
		for (unsigned int i = 0; i < IN_PAGE; i++) {
			struct heap_block *block = last ? NULL : heap_list_find(k->list, words[i]);

			if (last && words[i] == last)
				return true;
			if (block && block->state == MLK_HEAP_USED)
				block->state = MLK_HEAP_CHANGED;
		}
	}
	return false;
}

/* Has @block the marks of stacks, though its cache was not met? */
static bool is_unknown(struct marking *k, const struct heap_memory *m,
		       const struct heap_block *block)
{
	return block->state == MLK_HEAP_USED && block->words[0] == JEMALLOC_MARK_BEFORE &&
	       block->address % HEAP_PAGE == 0 && visit_words(k, m, block, MARK_BEHIND);
}

static int mark_unknown(struct marking *k, const struct heap_memory *m, struct heap_block *stack)
{
	k->stacks++;
	stack->state = MLK_HEAP_OWN;
	stack->words[0] = 0;
	visit_words(k, m, stack, 0);
	return jemalloc_add_own(k->j, stack->address, stack->size);
}

int jemalloc_mark_cached(struct jemalloc *j, struct heap_memory *m, struct heap_list *list)
{
	struct marking k = {.j = j, .list = list};
	struct visitor v = {.j = j, .m = m, .each = mark_stack, .cached = mark_block, .arg = &k};
	int err = find_arenas(j, m);

	if (!err)
		err = visit_all(&v);
	for (size_t i = 0; i < list->nr && !err; i++)
		if (is_unknown(&k, m, &list->v[i]))
			err = mark_unknown(&k, m, &list->v[i]);
	j->strange = k.stacks && !k.caches;
	return err;
}

/* The rest of jemalloc_look_at_caches(). */
static int add_cached(void *arg, const struct jemalloc *j, uint64_t address, size_t szind)
{
	struct heap_list *list = arg;
	const struct heap_block block = {
		.address = address, .size = j->sizes[szind], .state = MLK_HEAP_CACHED};

	return address > INT64_MAX - block.size ? 0 : heap_list_add(list, &block);
}

int jemalloc_look_at_caches(struct jemalloc *j, struct heap_memory *m, struct heap_list *list)
{
	struct visitor v = {.j = j, .m = m, .cached = add_cached, .arg = list};

	return visit_all(&v);
}
