/* jemalloc_extent.c - struct edata_s and the blocks that these lie in: see jemalloc.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/jemalloc.h"

/* struct edata_s, from its beginning. */
#define ADDR   8
#define SIZE   16
#define BITMAP 64

/* Its first word. */
#define ARENA(bits) ((bits)&0xfff)
#define SLAB(bits)  ((bits) >> 12 & 1)
#define STATE(bits) ((bits) >> 17 & 7)
#define SZIND(bits) ((bits) >> 20 & 0xff)
#define NFREE(bits) ((bits) >> 28 & 0x3ff)

#define LAST_STATE 5
#define NO_ARENA   0xfff

/* struct base_block_s, which lies at a multiple of 2 MiB. */
#define BLOCK_ALIGN (UINT64_C(2) << 20)
#define BLOCK_NEXT  8
#define BLOCK_EDATA 16
#define BLOCK_BYTES (BLOCK_EDATA + JEMALLOC_EDATA)
#define MOST_BLOCK  (UINT64_C(1) << 40) /* bytes */
#define MOST_BASES  65536

/* rtree_leaf_elm_t, with 48 bits of an address. */
#define ELEMENT_ADDRESS UINT64_C(0x0000ffffffffff80)
#define ELEMENT_NONE	UINT64_C(0x60) /* bits that are always 0 */

uint64_t jemalloc_edata(uint64_t element)
{
	return element & ELEMENT_NONE ? 0 : element & ELEMENT_ADDRESS;
}

/* Keep the bits of regions that there are: behind the last one, its word has zeros, and what words
 * are behind that is nobody's.  Is their number @nr_free, what the slab says? */
static bool take_bitmap(struct jemalloc_extent *e, const uint8_t *bitmap, unsigned int nr_free)
{
	const unsigned int regions = (unsigned int)(e->size / e->region);
	unsigned int sum = 0;

	for (unsigned int i = 0; i * 64 < regions; i++) {
		e->free[i] = heap_word(bitmap + (size_t)i * 8);
		if (regions - i * 64 < 64 && e->free[i] >> (regions - i * 64))
			return false;
		sum += (unsigned int)__builtin_popcountll(e->free[i]);
	}
	return sum == nr_free;
}

bool jemalloc_extent_fits(const struct jemalloc *j, const struct jemalloc_extent *e)
{
	const uint64_t inside = e->address % HEAP_PAGE;

	if (e->szind >= j->nr_sizes)
		return false;
	if (e->slab)
		return !inside && e->region < JEMALLOC_LARGE && e->region <= e->size &&
		       e->size / e->region <= JEMALLOC_REGIONS;
	/* a page more, in which it begins anywhere; what is sampled has a page for itself */
	return inside + e->region <= e->size &&
	       (e->region < JEMALLOC_LARGE ? e->size <= JEMALLOC_LARGE + HEAP_PAGE
					   : e->size - e->region <= HEAP_PAGE);
}

bool jemalloc_take_extent(const struct jemalloc *j, const uint8_t *bytes, struct jemalloc_extent *e)
{
	const uint64_t bits = heap_word(bytes);

	*e = (struct jemalloc_extent){.address = heap_word(bytes + ADDR),
				      .size = heap_word(bytes + SIZE) & ~(uint64_t)(HEAP_PAGE - 1),
				      .szind = (uint8_t)SZIND(bits),
				      .state = (uint8_t)STATE(bits),
				      /* nobody resets it in what is free */
				      .slab = SLAB(bits) && !STATE(bits)};
	if (ARENA(bits) == NO_ARENA || e->state > LAST_STATE || !e->address || e->address % 16 ||
	    !e->size || e->address > ELEMENT_ADDRESS || e->size > ELEMENT_ADDRESS - e->address)
		return false;
	if (e->state || e->szind >= j->nr_sizes)
		return true;
	e->region = j->sizes[e->szind];
	if (!e->slab || !jemalloc_extent_fits(j, e))
		return true;
	return take_bitmap(e, bytes + BITMAP, NFREE(bits));
}

bool jemalloc_read_extent(const struct jemalloc *j, const struct heap_memory *m, uint64_t edata,
			  struct jemalloc_extent *e)
{
	uint8_t bytes[JEMALLOC_EDATA];

	if (!edata || heap_memory_read_present(m, edata, bytes, sizeof(bytes)) ||
	    !jemalloc_take_extent(j, bytes, e))
		return false;
	e->edata = edata;
	return true;
}

/* Number of the first base block that ends behind @address. */
static size_t base_behind(const struct jemalloc *j, uint64_t address)
{
	size_t low = 0, high = j->nr_bases;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (j->bases[middle].address + j->bases[middle].length <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Is there a base block at @address? Its unused rest is an edata of no arena. */
static bool is_base(const struct heap_memory *m, uint64_t address, uint64_t *size, uint64_t *next)
{
	uint8_t bytes[BLOCK_BYTES];
	uint64_t bits, rest, len;

	if (!heap_memory_range(m, address) ||
	    heap_memory_read_present(m, address, bytes, sizeof(bytes)))
		return false;
	*size = heap_word(bytes);
	*next = heap_word(bytes + BLOCK_NEXT);
	bits = heap_word(bytes + BLOCK_EDATA);
	rest = heap_word(bytes + BLOCK_EDATA + ADDR);
	len = heap_word(bytes + BLOCK_EDATA + SIZE);
	return *size && *size % BLOCK_ALIGN == 0 && *size <= MOST_BLOCK &&
	       *next % BLOCK_ALIGN == 0 && ARENA(bits) == NO_ARENA && !SLAB(bits) && !STATE(bits) &&
	       rest > address && rest - address <= *size && len <= *size - (rest - address) &&
	       heap_memory_range(m, address + *size - 1);
}

static int add_base(struct jemalloc *j, uint64_t address, uint64_t size)
{
	const size_t at = base_behind(j, address);

	if (j->nr_bases >= MOST_BASES ||
	    (at < j->nr_bases && j->bases[at].address < address + size))
		return 0;
	if (grow_array(&j->bases, j->nr_bases, &j->room_bases, sizeof(*j->bases)))
		return -ENOMEM;
	memmove(&j->bases[at + 1], &j->bases[at], (j->nr_bases - at) * sizeof(*j->bases));
	j->bases[at] = (struct mlk_heap_arena){address, size};
	j->nr_bases++;
	return 1;
}

/* The base block that begins at most @blocks times its alignment before @address and holds it; 0:
 * none. */
static uint64_t search_base(const struct heap_memory *m, uint64_t address, unsigned int blocks,
			    uint64_t *size, uint64_t *next)
{
	uint64_t block = address & ~(BLOCK_ALIGN - 1);

	for (; blocks && block && heap_memory_range(m, block); blocks--, block -= BLOCK_ALIGN)
		if (is_base(m, block, size, next))
			return address - block < *size ? block : 0;
	return 0;
}

int jemalloc_find_base(struct jemalloc *j, struct heap_memory *m, uint64_t address,
		       unsigned int blocks)
{
	size_t at = base_behind(j, address);
	uint64_t size, next, block;
	int added, older;

	if (at < j->nr_bases && j->bases[at].address <= address)
		return 1;
	block = search_base(m, address, blocks, &size, &next);
	added = older = block ? add_base(j, block, size) : 0;
	/* others of the same arena */
	while (older > 0 && next && is_base(m, next, &size, &block)) {
		older = add_base(j, next, size);
		next = block;
	}
	return older < 0 ? older : added;
}

int jemalloc_add_own(struct jemalloc *j, uint64_t address, uint64_t length)
{
	if (j->nr_own >= MLK_MAX_HEAP_ARENAS)
		return 0;
	if (grow_array(&j->own, j->nr_own, &j->room_own, sizeof(*j->own)))
		return -ENOMEM;
	j->own[j->nr_own++] = (struct mlk_heap_arena){address, length};
	return 0;
}

void jemalloc_release(struct jemalloc *j)
{
	free(j->bases);
	free(j->own);
	free(j->arenas);
	free(j->extents);
	*j = (struct jemalloc){0};
}
