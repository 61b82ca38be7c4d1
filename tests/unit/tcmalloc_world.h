/* tcmalloc_world.h - for the tests of tcmalloc's memory: a process that has all of its structures
 */
#ifndef TESTS_TCMALLOC_WORLD_H
#define TESTS_TCMALLOC_WORLD_H

#include "record/heap/tcmalloc.h"
#include "tests/unit/heap_world.h"

/* Where things are; the file's offsets are addresses. */
#define DATA	   UINT64_C(0x10000000)
#define DATA_BYTES UINT64_C(0x200000)
#define ROOT	   (DATA + 0x20f08)
#define CENTRAL	   (DATA + 0x160f20)
#define SIZES	   (DATA + 0x190f9c) /* class_to_size_ */
#define POOL	   (DATA + 0x1a0fe8) /* of Spans; its words are in two pages */
#define CACHE_POOL (DATA + 0x1a1080)
#define HEADS	   (DATA + 0x1a1100)
#define META	   UINT64_C(0x200000000)
#define META_BYTES UINT64_C(0x800000)
#define SPANS	   META /* of 128 KiB at first */
#define CACHES	   (META + 0x20000)
#define LEAF	   (META + 0x40000)
#define HEAP	   UINT64_C(0x240000000)
#define HEAP_BYTES UINT64_C(0x100000)
#define END	   UINT64_C(0x300000000)

/* Spans: their numbers and where they are. */
#define SLAB	   HEAP		    /* 170 objects of 48 bytes, and 32 */
#define FREE	   (HEAP + 0x2000)  /* 3 pages */
#define LARGE	   (HEAP + 0x8000)  /* 5 pages */
#define OTHER	   (HEAP + 0x12000) /* 8 objects of 1024 bytes */
#define FULL	   (HEAP + 0x14000) /* 2 of 4096 */
#define REST	   (HEAP + 0x16000) /* up to the end, given back */
#define GONE	   (SPANS + 48 * 6) /* a Span that is no more */
#define NR_SPANS   7
#define OBJECTS	   170
#define CLASS_48   3
#define CLASS_1024 5
#define CLASS_4096 6
#define NR_CLASSES 13

static const uint32_t sizes[NR_CLASSES] = {0,	 8,	16,    48,    256,    1024,  4096,
					   8192, 16384, 32768, 65536, 131072, 262144};

struct world {
	struct heap_world w;
	struct tcmalloc t;
};

static inline uint64_t bits_of(uint64_t refcount, uint64_t sizeclass, uint64_t location)
{
	return refcount | sizeclass << 16 | location << 24;
}

/* Span @i; a slab has its element in each page, others in the first and the last. */
static inline void write_span(const struct heap_world *w, unsigned int i, uint64_t address,
			      uint64_t pages, uint64_t objects, uint64_t bits)
{
	const uint64_t span = SPANS + UINT64_C(48) * i, first = address / 8192;

	write_word(w, span, first);
	write_word(w, span + 8, pages);
	write_word(w, span + 16, 0);
	write_word(w, span + 24, 0);
	write_word(w, span + 32, objects);
	write_word(w, span + 40, bits);
	write_word(w, LEAF + first % (1u << 18) * 8, span);
	write_word(w, LEAF + (first + pages - 1) % (1u << 18) * 8, span);
}

static inline void write_sizes(const struct heap_world *w)
{
	for (unsigned int i = 1; i < NR_CLASSES; i++) {
		const uint32_t moved = i == CLASS_48 ? 3 : 32;

		write_bytes(w, SIZES + 4 * i, &sizes[i], 4);
		write_bytes(w, SIZES - 512 + 4 * i, &moved, 4);
		write_word(w, SIZES + 516 + 8 * i, sizes[i] < 8192 ? 1 : sizes[i] / 8192);
	}
}

/* Class 3 has a chain of the objects 30 to 32 in a slot, and had one more. */
static inline void write_central(const struct heap_world *w)
{
	for (unsigned int i = 0; i < NR_CLASSES; i++) {
		const uint64_t at = CENTRAL + UINT64_C(1216) * i;

		write_word(w, at + 8, i);
		for (uint64_t list = at + 16; list <= at + 64; list += 48) {
			write_word(w, list + 16, list);
			write_word(w, list + 24, list);
		}
		write_word(w, at + 1152, i == CLASS_48);
	}
	write_word(w, CENTRAL + 1216 * CLASS_48 + 64 + 16, SPANS);
	write_word(w, CENTRAL + 1216 * CLASS_48 + 128, SLAB + 30 * 48);
	write_word(w, CENTRAL + 1216 * CLASS_48 + 136, SLAB + 32 * 48);
	write_word(w, CENTRAL + 1216 * CLASS_48 + 144, SLAB + 40 * 48);
	write_word(w, SLAB + 30 * 48, SLAB + 31 * 48);
	write_word(w, SLAB + 31 * 48, SLAB + 32 * 48);
	write_word(w, SLAB + 32 * 48, 0);
}

/* Two caches of threads, and one that was alone when it ended; the second one has the objects 10
 * and 11. */
static inline void write_caches(const struct heap_world *w)
{
	for (unsigned int i = 0; i < 3; i++) {
		const uint64_t cache = CACHES + UINT64_C(4160) * i;

		for (unsigned int k = 0; k < NR_CLASSES; k++)
			write_word(w, cache + 32 * k + 24, sizes[k]);
		write_word(w, cache + 4144, i == 0 ? CACHES + 4160 : 0);
		write_word(w, cache + 4152, i == 1 ? CACHES : 0);
	}
	write_word(w, CACHES + 4160 + 32 * CLASS_48, SLAB + 10 * 48);
	write_word(w, CACHES + 4160 + 32 * CLASS_48 + 8, 2);
	write_word(w, SLAB + 10 * 48, SLAB + 11 * 48);
	write_word(w, SLAB + 11 * 48, 0);
	write_word(w, CACHE_POOL, CACHES + 4160 * 3);
	write_word(w, CACHE_POOL + 8, (128 << 10) - 4160 * 3);
	write_word(w, CACHE_POOL + 16, CACHES + 4160 * 2);
	write_word(w, CACHE_POOL + 24, 2);
	write_word(w, HEADS, CACHES);
	write_word(w, HEADS + 16, CACHES + 4160);
}

static inline void write_world(const struct heap_world *w)
{
	write_word(w, DATA + DATA_BYTES - 8, 1);
	write_word(w, ROOT + (HEAP >> 31) * 8, LEAF);
	write_sizes(w);
	write_central(w);
	write_caches(w);
	write_span(w, 0, SLAB, 1, SLAB + 2 * 48, bits_of(OBJECTS - 2, CLASS_48, 0));
	write_word(w, SLAB + 2 * 48, SLAB + 7 * 48);
	write_word(w, SLAB + 7 * 48, 0);
	write_word(w, SLAB + 8192 - 8, HEAP);
	write_span(w, 1, FREE, 3, 0, bits_of(0, 7, 1));
	write_span(w, 2, LARGE, 5, 0, 0);
	write_word(w, LARGE, 77);
	write_span(w, 3, OTHER, 1, 0, bits_of(8, CLASS_1024, 0));
	write_word(w, OTHER, 1);
	write_span(w, 4, FULL, 1, 0, bits_of(2, CLASS_4096, 0));
	write_word(w, FULL, 1);
	write_span(w, 5, REST, (HEAP + HEAP_BYTES - REST) / 8192, 0, bits_of(0, 0, 2));
	/* pages inside of what is free still lead to what they were */
	write_word(w, LEAF + (FREE / 8192 + 1) % (1u << 18) * 8, GONE);
	write_word(w, GONE, 0);
	write_word(w, GONE + 32, SLAB + 50 * 48);
	write_word(w, POOL, SPANS + 48 * NR_SPANS);
	write_word(w, POOL + 8, (128 << 10) - 48 * NR_SPANS);
	write_word(w, POOL + 16, GONE);
	write_word(w, POOL + 24, NR_SPANS - 1);
}

static inline struct world *begin_world(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world_begin(&world->w, END);
	world_range(&world->w, DATA, DATA_BYTES);
	world_range(&world->w, META, META_BYTES);
	world_range(&world->w, HEAP, HEAP_BYTES);
	return world;
}

static inline void end_world(struct world *world)
{
	tcmalloc_release(&world->t);
	world_end(&world->w);
	free(world);
}

static inline int find(struct world *world)
{
	tcmalloc_release(&world->t);
	heap_memory_forget(&world->w.memory);
	return tcmalloc_find(&world->t, &world->w.memory, DATA, DATA + DATA_BYTES);
}

static inline int walk(struct world *world)
{
	return tcmalloc_walk(&world->t, &world->w.memory, &world->w.list);
}

#endif
