/* glibc_free.c - chunks that look as if they were in use, and are in lists of free ones: see
 * glibc.h
 *
 * The lists change while they are followed.  What cannot be followed to its end is noted, and then
 * no chunk of its size is believed to be in use.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "record/heap/glibc.h"

#define FASTBINS 16 /* of struct malloc_state, before version 2.43 */
#define KEY	 8  /* of a chunk in a thread's cache: behind the pointer to the next one */

#define TRIES	  8
#define MOST_BINS 65536 /* chunks of all bins of an arena that are followed */

/*
 * struct tcache_perthread_struct, a block of its own: a u16 for each list, and the lists.  From
 * version 2.42 on some are for larger blocks, each list for those of many sizes.
 */
#define SMALL_BINS 64
#define CACHE_BINS 76 /* at most */
#define LARGEST	   (4u << 20)

struct cache_kind {
	unsigned int bins, entries; /* lists, and where they begin */
	uint64_t size;		    /* usable bytes of the block */
	int from, to;		    /* versions; GLIBC_UNKNOWN may be any */
};

static const struct cache_kind cache_kinds[] = {
	{SMALL_BINS, SMALL_BINS * 2, SMALL_BINS * 10 + 8, 0, 41},
	{CACHE_BINS, CACHE_BINS * 2, CACHE_BINS * 10, 42, INT_MAX},
};

/* What kind of cache a block of @size bytes may be; NULL: it is none. */
static const struct cache_kind *cache_kind_of(const struct glibc *g, uint64_t size)
{
	for (size_t i = 0; i < sizeof(cache_kinds) / sizeof(*cache_kinds); i++) {
		const struct cache_kind *kind = &cache_kinds[i];

		if (size == kind->size &&
		    (g->minor == GLIBC_UNKNOWN || (g->minor >= kind->from && g->minor <= kind->to)))
			return kind;
	}
	return NULL;
}

/* The blocks that a list of free chunks may have. */
struct free_list {
	const struct glibc *g;
	struct heap_memory *m;
	struct heap_list *list;
	uint64_t least, most; /* their size */
	uint8_t state;	      /* of those in it */
};

/* List @i of threads' caches, or of those by size. */
static void set_sizes(struct free_list *f, unsigned int i)
{
	f->least = f->most = 24u + 16u * i;
	if (i >= SMALL_BINS) {
		f->least = 24u + 16u * SMALL_BINS;
		f->most = LARGEST;
	}
}

static bool has_size(const struct free_list *f, const struct heap_block *block)
{
	return block->size >= f->least && block->size <= f->most;
}

/* From version 2.32 on a pointer to the next is mangled by its own place. */
static bool is_mangled(const struct glibc *g)
{
	return g->minor >= 32 || g->minor == GLIBC_UNKNOWN;
}

/* Is @word one to a block of the list, or to none? */
static bool next_of(const struct free_list *f, uint64_t place, uint64_t word, uint64_t head,
		    struct heap_block **next)
{
	uint64_t address = is_mangled(f->g) ? word ^ place >> 12 : word;

	*next = NULL;
	if (!address)
		return true;
	*next = heap_list_find(f->list, address + head);
	return *next && has_size(f, *next);
}

/* Follow the list that begins with the block at @address; the pointers lead to what is @head bytes
 * before a block.  Returns whether it came to its end. */
static bool follow(const struct free_list *f, uint64_t address, uint64_t head)
{
	struct heap_block *block = address ? heap_list_find(f->list, address + head) : NULL;

	if (!address)
		return true;
	if (!block || !has_size(f, block))
		return false;
	while (block) {
		uint64_t word, place = block->address;

		if (block->state == f->state)
			return true; /* it was followed from there on before */
		if (block->state != MLK_HEAP_USED && block->state != MLK_HEAP_CHANGED)
			return false;
		block->state = f->state;
		if (heap_memory_read(f->m, place, &word, sizeof(word)) ||
		    !next_of(f, place, word, head, &block))
			return false;
	}
	return true;
}

/* What only one chunk has may be the program's own by now. */
static bool is_known_key(const struct glibc *g, uint64_t word)
{
	for (size_t i = 0; i < g->nr_keys; i++)
		if (g->keys[i].word == word)
			return g->keys[i].seen > 1;
	return false;
}

static void add_key(struct glibc *g, uint64_t word)
{
	for (size_t i = 0; i < g->nr_keys; i++)
		if (g->keys[i].word == word) {
			g->keys[i].seen++;
			return;
		}
	if (word && g->nr_keys < GLIBC_KEYS) {
		g->keys[g->nr_keys].word = word;
		g->keys[g->nr_keys++].seen = 1;
	}
}

static bool knows_key(const struct glibc *g)
{
	for (size_t i = 0; i < g->nr_keys; i++)
		if (g->keys[i].seen > 1)
			return true;
	return false;
}

/* Can @entries be those of a thread's cache, and not all empty? A list's first block has the list's
 * size; some may be new. */
static bool are_entries(const struct heap_list *list, const uint64_t *entries, unsigned int nr)
{
	int found = 0, strange = 0;

	for (unsigned int i = 0; i < nr; i++) {
		struct free_list f = {0};
		const struct heap_block *block =
			entries[i] ? heap_list_find(list, entries[i]) : NULL;

		if (entries[i] % 16)
			return false;
		set_sizes(&f, i);
		if (block && has_size(&f, block))
			found++;
		else
			strange += entries[i] != 0;
	}
	return found > strange;
}

/* Is @block a thread's cache of that kind? */
static bool is_cache(const struct heap_memory *m, const struct heap_list *list,
		     const struct heap_block *block, const struct cache_kind *kind,
		     uint64_t *entries)
{
	return (block->state == MLK_HEAP_USED || block->state == MLK_HEAP_OWN) &&
	       !heap_memory_read(m, block->address + kind->entries, entries, kind->bins * 8) &&
	       are_entries(list, entries, kind->bins);
}

/* The bit of a list of blocks of @size bytes; 0: there is none. */
static uint64_t bit_of(uint64_t size)
{
	return (size + 8) / 16 < 64 ? UINT64_C(1) << (size + 8) / 16 : 0;
}

static void mark_cache(struct glibc *g, struct heap_memory *m, struct heap_list *list,
		       struct heap_block *cache)
{
	const struct cache_kind *kind = cache_kind_of(g, cache->size);
	struct free_list f = {.g = g, .m = m, .list = list, .state = MLK_HEAP_CACHED};
	uint64_t entries[CACHE_BINS], key;
	bool is = false;

	for (int try = 0; kind && !is && try < TRIES; try++)
		is = is_cache(m, list, cache, kind, entries);
	if (!is)
		return;
	cache->state = MLK_HEAP_OWN;
	for (unsigned int i = 0; i < kind->bins; i++) {
		set_sizes(&f, i);
		if (entries[i] && !heap_memory_read(m, entries[i] + KEY, &key, sizeof(key)))
			add_key(g, key);
		/* what is missed has a key */
		for (int try = 0; try < TRIES && !follow(&f, entries[i], 0); try++)
			if (heap_memory_read(m, cache->address + kind->entries + 8 * (size_t)i,
					     &entries[i], 8))
				break;
	}
}

/* Lists by size: an arena has no others from version 2.43 on. */
static unsigned int nr_fastbins(const struct glibc *g)
{
	return g->to_bins == GLIBC_TO_BINS ? GLIBC_FASTBINS : 0;
}

/* Follow the lists of an arena by size, which lead from chunk to chunk. */
static void mark_fast(struct glibc *g, struct heap_memory *m, struct heap_list *list, size_t number)
{
	const uint64_t arena = g->arenas[number].address;
	struct free_list f = {.g = g, .m = m, .list = list, .state = MLK_HEAP_FAST};

	for (unsigned int i = 0; i < nr_fastbins(g); i++) {
		bool followed = false;

		set_sizes(&f, i);
		for (int try = 0; try < TRIES && !followed; try++) {
			uint64_t first;

			if (heap_memory_read(m, arena + FASTBINS + 8 * (size_t)i, &first, 8))
				break;
			followed = follow(&f, first, GLIBC_HEADER);
		}
		if (!followed)
			g->broken[number] |= bit_of(f.least);
	}
}

/* May @block be free, though it was met in no list? */
static bool is_doubtful(const struct glibc *g, const struct heap_block *block)
{
	return is_known_key(g, block->words[1]) ||
	       (block->arena < g->nr_arenas && g->broken[block->arena] & bit_of(block->size));
}

int glibc_mark_free(struct glibc *g, struct heap_memory *m, struct heap_list *list)
{
	free(g->broken);
	g->broken = calloc(g->nr_arenas + 1, sizeof(*g->broken));
	if (!g->broken)
		return -ENOMEM;
	for (size_t i = 0; i < list->nr && !heap_memory_stopped(m); i++)
		if (list->v[i].state == MLK_HEAP_USED)
			mark_cache(g, m, list, &list->v[i]);
	for (size_t i = 0; i < g->nr_arenas && !heap_memory_stopped(m); i++)
		mark_fast(g, m, list, i);
	for (size_t i = 0; i < list->nr; i++)
		if (list->v[i].state == MLK_HEAP_USED && is_doubtful(g, &list->v[i]))
			list->v[i].state = MLK_HEAP_CHANGED;
	return heap_memory_stopped(m) ? -ECANCELED : 0;
}

/* The rest of glibc_look_at_free(). */
struct gather {
	struct glibc *g;
	struct heap_memory *m;
	struct heap_list *list;
	size_t region; /* the one that the block before was in */
	int err;
};

/* Are [@start, @end) an arena's? */
static bool is_in_arena(struct gather *a, uint64_t start, uint64_t end)
{
	const struct glibc *g = a->g;

	for (size_t i = 0; i < g->nr_regions; i++, a->region++) {
		a->region = a->region < g->nr_regions ? a->region : 0;
		if (start >= g->regions[a->region].start && end <= g->regions[a->region].end)
			return true;
	}
	return false;
}

/* The block at @address is free; its chunk says how large it is. */
static bool gather_block(struct gather *a, uint64_t address)
{
	uint64_t size;
	struct heap_block block = {.address = address, .state = MLK_HEAP_FREE};

	if (address % 16 || heap_memory_read(a->m, address - 8, &size, sizeof(size)))
		return false;
	size &= ~UINT64_C(7);
	if (size < GLIBC_MIN_CHUNK || size % 16 || size > UINT64_MAX - address ||
	    !is_in_arena(a, address, address + size - GLIBC_HEADER))
		return false;
	block.size = size - 8;
	a->err = heap_list_add(a->list, &block);
	return !a->err;
}

/* @cached: in a thread's cache. */
static void gather_list(struct gather *a, uint64_t address, uint64_t head, bool cached)
{
	for (int i = 0; address && i < MOST_BINS; i++) {
		uint64_t place = address + head, words[2];

		if (heap_memory_read(a->m, place, words, sizeof(words)) ||
		    (cached && knows_key(a->g) && !is_known_key(a->g, words[1])) ||
		    !gather_block(a, place))
			return;
		address = is_mangled(a->g) ? words[0] ^ place >> 12 : words[0];
	}
}

static void gather_arena(struct gather *a, uint64_t arena)
{
	uint8_t bytes[GLIBC_TO_BINS + GLIBC_BINS * 16];
	const uint8_t *bins = bytes + a->g->to_bins;
	int left = MOST_BINS;

	if (heap_memory_read(a->m, arena, bytes, a->g->to_bins + GLIBC_BINS * 16))
		return;
	for (unsigned int i = 0; i < nr_fastbins(a->g) && !a->err; i++)
		gather_list(a, heap_word(bytes + FASTBINS + 8 * i), GLIBC_HEADER, false);
	for (int i = 0; i < GLIBC_BINS && !a->err; i++) {
		uint64_t bin = arena + a->g->to_bins + 16 * (uint64_t)i - GLIBC_HEADER;
		uint64_t chunk = heap_word(bins + 16 * i);

		while (chunk != bin && left-- > 0 && gather_block(a, chunk + GLIBC_HEADER))
			if (heap_memory_read(a->m, chunk + GLIBC_HEADER, &chunk, sizeof(chunk)))
				break;
	}
}

int glibc_look_at_free(struct glibc *g, struct heap_memory *m, const struct heap_list *caches,
		       struct heap_list *list)
{
	struct gather a = {.g = g, .m = m, .list = list};

	for (size_t i = 0; i < caches->nr && !a.err; i++) {
		const struct cache_kind *kind = cache_kind_of(g, caches->v[i].size);
		uint64_t entries[CACHE_BINS];

		if (!kind || heap_memory_read(m, caches->v[i].address + kind->entries, entries,
					      kind->bins * 8))
			continue;
		for (unsigned int bin = 0; bin < kind->bins && !a.err; bin++)
			gather_list(&a, entries[bin], 0, true);
	}
	for (size_t i = 0; i < g->nr_arenas && !a.err; i++)
		gather_arena(&a, g->arenas[i].address);
	return a.err;
}
