/* glibc_find.c - where glibc has its arenas: see glibc.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/glibc.h"

#define OLDEST 31 /* versions whose memory is laid out as here */
#define NEWEST 44

/* struct malloc_state, from its lists on: before them, and behind. */
#define TOP_BEFORE 16
#define NEXT	   2048
#define SYSTEM_MEM 2072

/* struct heap_info: the memory of other arenas lies at multiples of HEAP_MAX. */
#define HEAP_MAX   (UINT64_C(64) << 20)
#define HEAP_PREV  8
#define HEAP_SIZE  16
#define HEAP_INFO  0x20 /* its size, to 2.34 */
#define HEAP_INFO2 0x30 /* and from 2.35 on */

/* struct malloc_par, from its member sbrk_base. */
#define MAPPED_BEFORE	  16 /* mmapped_mem, and then max_mmapped_mem */
#define TCACHE_BINS_AFTER 8
#define MOST_TCACHE_BINS  128

#define BASE_NEAR (UINT64_C(1) << 20) /* so far behind the beginning of its memory, at most */

static const char banner[] = "stable release version 2.";

bool glibc_find_version(struct glibc *g, struct heap_memory *m, uint64_t from, uint64_t to)
{
	const size_t step = HEAP_WINDOW - sizeof(banner) - 2;

	for (uint64_t at = from; at < to && !heap_memory_stopped(m); at += step) {
		size_t len = to - at < HEAP_WINDOW ? (size_t)(to - at) : HEAP_WINDOW;
		const uint8_t *bytes = heap_memory_peek(m, at, len);
		const uint8_t *text = bytes ? memmem(bytes, len, banner, sizeof(banner) - 1) : NULL;

		if (!text || (size_t)(bytes + len - text) < sizeof(banner) + 1)
			continue;
		text += sizeof(banner) - 1;
		if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
			return false;
		g->minor = (text[0] - '0') * 10 + text[1] - '0';
		return true;
	}
	return false;
}

bool glibc_knows_version(const struct glibc *g)
{
	return g->minor == GLIBC_UNKNOWN || (g->minor >= OLDEST && g->minor <= NEWEST);
}

static uint64_t read_word(const struct heap_memory *m, uint64_t address)
{
	uint64_t word;

	return heap_memory_read(m, address, &word, sizeof(word)) ? 0 : word;
}

uint64_t glibc_top(const struct glibc *g, const struct heap_memory *m, uint64_t arena)
{
	return read_word(m, arena + g->to_bins - TOP_BEFORE);
}

uint64_t glibc_system_memory(const struct glibc *g, const struct heap_memory *m, uint64_t arena)
{
	return read_word(m, arena + g->to_bins + SYSTEM_MEM);
}

uint64_t glibc_mapped_memory(const struct glibc *g, const struct heap_memory *m)
{
	return g->base_at ? read_word(m, g->base_at - MAPPED_BEFORE) : 0;
}

/* May @word lead to a chunk, or is it the list's @own address? */
static bool is_link(const struct heap_memory *m, uint64_t word, uint64_t own)
{
	return word == own || (word % 16 == 0 && heap_memory_may_have(m, word));
}

/* Are these @bytes, which lie at @at, the lists of an arena? An empty one points to itself, as if
 * it were in a chunk.  One of them may be just being changed. */
static bool are_bins(const struct heap_memory *m, const uint8_t *bytes, uint64_t at)
{
	int empty = 0, half = 0;

	for (int i = 0; i < GLIBC_BINS; i++, bytes += 16, at += 16) {
		uint64_t next = heap_word(bytes), before = heap_word(bytes + 8);
		uint64_t own = at - GLIBC_HEADER;

		if (!is_link(m, next, own) || !is_link(m, before, own))
			return false;
		empty += next == own && before == own;
		half += (next == own) != (before == own);
	}
	return empty > 0 && half < 2;
}

/* Has the arena whose lists are at @bins memory? */
static bool has_memory(const struct heap_memory *m, uint64_t bins)
{
	uint64_t top = read_word(m, bins - TOP_BEFORE);

	return top != bins - GLIBC_HEADER && heap_memory_may_have(m, top);
}

/* Is there another arena at @address? It lies at the beginning of its memory. */
static bool is_other(const struct heap_memory *m, uint64_t address)
{
	uint64_t heap = address & ~(HEAP_MAX - 1);

	return (address - heap == HEAP_INFO || address - heap == HEAP_INFO2) &&
	       heap_memory_range(m, address) && read_word(m, heap) == address;
}

/* Do the arenas from the main one at @first on lead from one to the next and back to it, if each
 * has its lists @to_bins behind its beginning? */
static bool is_ring(const struct heap_memory *m, uint64_t first, uint64_t to_bins)
{
	uint64_t at = first;

	for (unsigned int i = 0; i < MLK_MAX_HEAP_ARENAS; i++) {
		at = read_word(m, at + to_bins + NEXT);
		if (at == first || !is_other(m, at))
			return at == first;
	}
	return false;
}

/* Is @address that of mp_.sbrk_base, which is @base? */
static bool is_base(const struct heap_memory *m, uint64_t address, uint64_t base)
{
	const struct mlk_range *range = heap_memory_range(m, base);
	uint64_t words[4];

	if (!range || strcmp(range->path, "[heap]") != 0 || base - range->start > BASE_NEAR ||
	    heap_memory_read(m, address - MAPPED_BEFORE, words, sizeof(words)))
		return false;
	return words[0] % HEAP_PAGE == 0 && words[1] % HEAP_PAGE == 0 && words[0] <= words[1] &&
	       words[MAPPED_BEFORE / 8] == base && words[3] && words[3] <= MOST_TCACHE_BINS;
}

bool glibc_find_main(struct glibc *g, struct heap_memory *m, uint64_t from, uint64_t to)
{
	bool found = false;

	for (uint64_t at = from & ~UINT64_C(7); at + 16 <= to && !heap_memory_stopped(m); at += 8) {
		const uint8_t *bytes = heap_memory_peek(m, at, 16);
		uint64_t word = bytes ? heap_word(bytes) : 0;
		uint8_t bins[GLIBC_BINS * 16 + 16];

		if (!bytes)
			return found;
		/* the base lies before the arena, or behind it */
		if (!g->sbrk_base && word && is_base(m, at, word)) {
			g->sbrk_base = word;
			g->base_at = at;
		}
		if (found || at < GLIBC_TO_BINS || !is_link(m, word, at - GLIBC_HEADER) ||
		    heap_memory_read(m, at, bins, sizeof(bins)) || !are_bins(m, bins, at))
			continue;
		/* two words before the lists may look as the first one */
		if (are_bins(m, bins + 16, at + 16))
			continue;
		found = true;
		g->to_bins = is_ring(m, at - GLIBC_TO_BINS_2, GLIBC_TO_BINS_2) ? GLIBC_TO_BINS_2
									       : GLIBC_TO_BINS;
		g->main_arena = has_memory(m, at) ? at - g->to_bins : 0;
	}
	return found;
}

static uint64_t arena_bytes(const struct glibc *g)
{
	return g->to_bins + GLIBC_BINS_ON;
}

static int add_region(struct glibc *g, uint64_t start, uint64_t end, uint64_t arena)
{
	if (start >= end)
		return 0;
	if (grow_array(&g->regions, g->nr_regions, &g->room_regions, sizeof(*g->regions)))
		return -ENOMEM;
	g->regions[g->nr_regions++] =
		(struct glibc_region){start, end, arena, (uint32_t)(g->nr_arenas - 1)};
	return 0;
}

/* The main arena's memory grows by brk(2); other memory that it may have is not walked. */
static int add_main(struct glibc *g, struct heap_memory *m)
{
	uint64_t start = 0, end = 0, top;

	for (size_t i = 0; i < m->nr; i++) {
		if (strcmp(m->ranges[i].path, "[heap]") != 0)
			continue;
		if (start && m->ranges[i].start != end)
			break;
		start = start ? start : m->ranges[i].start;
		end = m->ranges[i].end;
	}
	if (g->sbrk_base >= start && g->sbrk_base < end)
		start = (g->sbrk_base + 15) & ~UINT64_C(15);
	/* it may have grown since its mappings were read */
	top = glibc_top(g, m, g->main_arena);
	top += read_word(m, top + 8) & ~UINT64_C(7);
	if (top > end && top - end <= HEAP_MOST_GROWN)
		end = top;
	return start ? add_region(g, start, end, g->main_arena) : 0;
}

/* What the arena at @arena says that it has, beyond the regions from @first on; a page at least. */
static uint64_t lost_of(const struct glibc *g, const struct heap_memory *m, uint64_t arena,
			size_t first)
{
	uint64_t all = glibc_system_memory(g, m, arena);

	for (size_t i = first; i < g->nr_regions; i++) {
		uint64_t size = g->regions[i].end - g->regions[i].start;

		all = all > size ? all - size : 0;
	}
	return all > HEAP_PAGE ? all : HEAP_PAGE;
}

/* The memory of the arena at @arena, heap by heap, from that of its top on. */
static int add_heaps(struct glibc *g, struct heap_memory *m, uint64_t arena)
{
	uint64_t first = arena & ~(HEAP_MAX - 1), heap = glibc_top(g, m, arena) & ~(HEAP_MAX - 1);
	const size_t before = g->nr_regions;
	int err = 0;

	for (unsigned int i = 0; heap && !err && i < MLK_MAX_HEAP_ARENAS; i++) {
		uint64_t size = read_word(m, heap + HEAP_SIZE), start = heap + (arena - first);

		if (read_word(m, heap) != arena || size > HEAP_MAX || size % HEAP_PAGE)
			break;
		if (heap == first)
			start = (arena + arena_bytes(g) + 15) & ~UINT64_C(15);
		err = add_region(g, start, heap + size, arena);
		if (heap == first)
			return err;
		heap = read_word(m, heap + HEAP_PREV) & ~(HEAP_MAX - 1);
	}
	g->lost += lost_of(g, m, arena, before);
	return err;
}

int glibc_find_arenas(struct glibc *g, struct heap_memory *m)
{
	uint64_t at = g->main_arena;
	int err = 0;

	g->nr_arenas = g->nr_regions = 0;
	g->lost = 0;
	while (at && !err && g->nr_arenas < MLK_MAX_HEAP_ARENAS) {
		if (at != g->main_arena && !is_other(m, at)) {
			g->lost += HEAP_PAGE; /* and how much more is not known */
			break;
		}
		if (grow_array(&g->arenas, g->nr_arenas, &g->room_arenas, sizeof(*g->arenas)))
			return -ENOMEM;
		g->arenas[g->nr_arenas++] = (struct mlk_heap_arena){at, arena_bytes(g)};
		err = at == g->main_arena ? add_main(g, m) : add_heaps(g, m, at);
		at = read_word(m, at + g->to_bins + NEXT);
		if (at == g->main_arena)
			break;
	}
	return err;
}

void glibc_release(struct glibc *g)
{
	free(g->arenas);
	free(g->regions);
	free(g->broken);
	*g = (struct glibc){0};
}
