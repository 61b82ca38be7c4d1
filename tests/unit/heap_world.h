/* heap_world.h - for the tests of allocators' memory: that of a process that there is not, in files
 * of which the offsets are addresses */
#ifndef TESTS_HEAP_WORLD_H
#define TESTS_HEAP_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/heap.h"
#include "record/heap/heap_list.h"
#include "record/heap/heap_memory.h"

#define WORLD_RANGES 4

/* A process's memory, what was found in it, and a state of random numbers. */
struct heap_world {
	struct heap_memory memory;
	struct mlk_range ranges[WORLD_RANGES];
	struct heap_list list;
	uint64_t seed;
};

/* Words of it that are looked at. */
struct world_part {
	uint64_t at, len;
};

/* A word that may be wrong. */
typedef uint64_t (*bad_word_fn)(struct heap_world *w);

static inline int world_file(uint64_t end)
{
	int fd = memfd_create("world", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)end), 0);
	return fd;
}

/* Begin with no ranges; all addresses are below @end. */
static inline void world_begin(struct heap_world *w, uint64_t end)
{
	w->seed = 1;
	w->memory.mem = world_file(end);
	w->memory.pagemap = world_file(end);
	w->memory.ranges = w->ranges;
}

static inline void world_range(struct heap_world *w, uint64_t start, uint64_t bytes)
{
	w->ranges[w->memory.nr++] =
		(struct mlk_range){.start = start, .end = start + bytes, .path = ""};
}

static inline void world_end(struct heap_world *w)
{
	heap_list_release(&w->list);
	close(w->memory.mem);
	close(w->memory.pagemap);
}

static inline void write_bytes(const struct heap_world *w, uint64_t address, const void *bytes,
			       size_t len)
{
	const uint64_t present = UINT64_C(1) << 63;

	assert_int_equal(pwrite(w->memory.mem, bytes, len, (off_t)address), (ssize_t)len);
	for (uint64_t page = address / 4096; page <= (address + len - 1) / 4096; page++)
		assert_int_equal(pwrite(w->memory.pagemap, &present, 8, (off_t)(page * 8)), 8);
}

static inline void write_word(const struct heap_world *w, uint64_t address, uint64_t word)
{
	write_bytes(w, address, &word, sizeof(word));
}

static inline uint64_t next_random(struct heap_world *w)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return w->seed >> 16;
}

/* How many blocks have that state. */
static inline size_t count(const struct heap_world *w, int state)
{
	size_t nr = 0;

	for (size_t i = 0; i < w->list.nr; i++)
		nr += w->list.v[i].state == state;
	return nr;
}

/* Can blocks be as they are in the list, and the @nr areas at @own? */
static inline void check_blocks(const struct heap_world *w, const struct mlk_heap_arena *own,
				size_t nr)
{
	uint64_t end = 0;

	for (size_t i = 0; i < w->list.nr; i++) {
		assert_true(w->list.v[i].address >= end);
		assert_true(w->list.v[i].address % 8 == 0);
		assert_true(w->list.v[i].size <= INT64_MAX - w->list.v[i].address);
		end = w->list.v[i].address + w->list.v[i].size;
	}
	for (size_t i = 0; i < nr; i++)
		assert_true(own[i].length <= INT64_MAX - own[i].address);
}

static inline bool is_in(const struct mlk_heap_arena *own, size_t nr, uint64_t address)
{
	for (size_t i = 0; i < nr; i++)
		if (address - own[i].address < own[i].length)
			return true;
	return false;
}

/* Make all words of the @nr parts zero. */
static inline void clear_parts(const struct heap_world *w, const struct world_part *parts,
			       size_t nr)
{
	static const uint8_t zeros[16384];

	for (size_t i = 0; i < nr; i++)
		write_bytes(w, parts[i].at, zeros, parts[i].len);
}

/* Write so many bad words somewhere into the @nr parts. */
static inline void destroy_parts(struct heap_world *w, const struct world_part *parts, size_t nr,
				 unsigned int words, bad_word_fn bad)
{
	while (words--) {
		const struct world_part *part = &parts[next_random(w) % nr];

		write_word(w, part->at + (next_random(w) % part->len & ~UINT64_C(7)), bad(w));
	}
}

/* Fill all ranges with bad words, half of them zero. */
static inline void fill_badly(struct heap_world *w, bad_word_fn bad)
{
	uint64_t words[512];

	for (unsigned int i = 0; i < w->memory.nr; i++)
		for (uint64_t at = w->ranges[i].start; at < w->ranges[i].end; at += sizeof(words)) {
			for (size_t k = 0; k < 512; k++)
				words[k] = next_random(w) % 2 ? bad(w) : 0;
			write_bytes(w, at, words, sizeof(words));
		}
}

/* An allocator whose memory it is. */
struct world_allocator {
	void (*write)(const struct heap_world *w); /* make all as it must be */
	int (*find)(struct heap_world *w);
	int (*walk)(struct heap_world *w);
	int (*look)(struct heap_world *w, struct heap_list *list);
	const struct mlk_heap_arena *(*own)(const struct heap_world *w, size_t *nr);
	bad_word_fn bad;
	const struct world_part *parts;
	size_t nr_parts;
};

/* Is it walked through to an end, whatever is in it? */
static inline void check_destroyed(struct heap_world *w, const struct world_allocator *a)
{
	struct heap_list looked = {0};

	for (unsigned int i = 0; i < 400; i++) {
		const struct mlk_heap_arena *own;
		size_t nr;

		clear_parts(w, a->parts, a->nr_parts);
		a->write(w);
		assert_int_equal(a->find(w), 1);
		destroy_parts(w, a->parts, a->nr_parts, 1 + i % 50, a->bad);
		assert_int_equal(a->walk(w), 0);
		own = a->own(w, &nr);
		check_blocks(w, own, nr);
		destroy_parts(w, a->parts, a->nr_parts, 1 + i % 50, a->bad);
		looked.nr = 0;
		assert_int_equal(a->look(w, &looked), 0);
		if (a->find(w) > 0)
			assert_int_equal(a->walk(w), 0);
	}
	heap_list_release(&looked);
}

static inline void check_early_end(struct heap_world *w, const struct world_allocator *a)
{
	static const _Atomic bool stop = true;

	a->write(w);
	assert_int_equal(a->find(w), 1);
	w->memory.stop = &stop;
	assert_int_equal(a->walk(w), -ECANCELED);
	assert_int_equal(a->find(w), 0);
}

#endif
