/* glibc.h - glibc's malloc in another process, versions 2.31 to 2.44, without symbols
 *
 * Names are those of glibc's malloc/malloc.c and malloc/arena.c.  All that is read may change
 * meanwhile, or be anything at all.
 */
#ifndef RECORD_HEAP_GLIBC_H
#define RECORD_HEAP_GLIBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/heap.h"
#include "record/heap/heap_list.h"
#include "record/heap/heap_memory.h"

#define GLIBC_FASTBINS	10  /* of struct malloc_state before version 2.43, as the next: */
#define GLIBC_BINS	127 /* pairs of words */
#define GLIBC_HEADER	16  /* from a chunk to its block: its size is the word before that */
#define GLIBC_MIN_CHUNK 32  /* bytes */
#define GLIBC_KEYS	256
#define GLIBC_UNKNOWN	0

/* struct malloc_state: from its beginning to its lists; and from these on its size */
#define GLIBC_TO_BINS	112
#define GLIBC_TO_BINS_2 24 /* from version 2.43 on: it has no lists by size, fastbins, any more */
#define GLIBC_BINS_ON	2088

/* Memory in which chunks lie one behind the other. */
struct glibc_region {
	uint64_t start, end; /* of the first chunk, of the memory */
	uint64_t address;    /* of its arena, */
	uint32_t arena;	     /* and its number */
};

/* glibc's malloc in one process. */
struct glibc {
	int minor;	     /* of the version, or GLIBC_UNKNOWN */
	uint64_t main_arena; /* 0: there is none, or it has no memory yet */
	uint64_t to_bins;    /* GLIBC_TO_BINS or GLIBC_TO_BINS_2 */
	uint64_t sbrk_base;  /* where the main arena's memory begins; 0: not known, as the next */
	uint64_t base_at;    /* address of that word, mp_.sbrk_base */
	struct mlk_heap_arena *arenas;
	size_t nr_arenas, room_arenas;
	struct glibc_region *regions;
	size_t nr_regions, room_regions;
	uint64_t unwalked; /* bytes, by the last walk */
	uint64_t lost;	   /* at least so many bytes of arenas were not found */
	struct {
		uint64_t word; /* that chunks in threads' caches have in common */
		unsigned int seen;
	} keys[GLIBC_KEYS];
	size_t nr_keys;
	uint64_t *broken; /* by arena: bit s: a list of size 16 * s could not be followed */
};

/* Find the version by a text of the C library in @from to @to.  Returns whether it is there. */
bool glibc_find_version(struct glibc *g, struct heap_memory *m, uint64_t from, uint64_t to);

/* Is the version one of which all that is read here is laid out as expected? Of an unknown one that
 * is found out by threads' caches. */
bool glibc_knows_version(const struct glibc *g);

/* Find the main arena in [@from, @to), writable data of the C library.  Returns whether it is
 * there; it may have no memory. */
bool glibc_find_main(struct glibc *g, struct heap_memory *m, uint64_t from, uint64_t to);

/* Find all arenas and their memory, as they are now.  Returns 0 or -ENOMEM. */
int glibc_find_arenas(struct glibc *g, struct heap_memory *m);

/* List all chunks in @list, sorted, in use or free.  Returns 0, -ENOMEM, -E2BIG or -ECANCELED. */
int glibc_walk(struct glibc *g, struct heap_memory *m, struct heap_list *list);

/* For glibc_walk(), in glibc_mapped.c: add blocks that have mappings of their own.  Returns as it.
 */
int glibc_walk_mapped(struct glibc *g, struct heap_memory *m, struct heap_list *list);

/* For glibc_walk(), in glibc_free.c: tell which chunks of @list, sorted, are free in lists of
 * threads and sizes.  Returns 0 or -ENOMEM. */
int glibc_mark_free(struct glibc *g, struct heap_memory *m, struct heap_list *list);

/* Add what is in any list of free chunks now to @list, in any order; what seems to be in one may be
 * there, too.  Returns 0, -ENOMEM or -E2BIG. */
int glibc_look_at_free(struct glibc *g, struct heap_memory *m, const struct heap_list *caches,
		       struct heap_list *list);

/* The top chunk of the arena at @arena; how much memory it got from the system; how much blocks
 * have that have mappings of their own.  0: not known. */
uint64_t glibc_top(const struct glibc *g, const struct heap_memory *m, uint64_t arena);
uint64_t glibc_system_memory(const struct glibc *g, const struct heap_memory *m, uint64_t arena);
uint64_t glibc_mapped_memory(const struct glibc *g, const struct heap_memory *m);

/* Forget all. */
void glibc_release(struct glibc *g);

#endif
