/* jemalloc.h - jemalloc 5.3 in another process, without symbols
 *
 * Names are those of its include/jemalloc/internal/ in version 5.3.0: rtree.h, edata.h, base.h,
 * cache_bin.h, tcache_structs.h, sc.h.  Pages are of 4096 bytes, addresses have 48 bits.  All that
 * is read may change meanwhile, or be anything at all.
 */
#ifndef RECORD_HEAP_JEMALLOC_H
#define RECORD_HEAP_JEMALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/heap.h"
#include "record/heap/heap_list.h"
#include "record/heap/heap_memory.h"

#define JEMALLOC_SIZES	    256	  /* of szind, at most */
#define JEMALLOC_REGIONS    512	  /* of a slab, at most */
#define JEMALLOC_EDATA	    128	  /* bytes of struct edata_s, and its alignment */
#define JEMALLOC_LARGE	    16384 /* the smallest size that has an extent of its own */
#define JEMALLOC_LEAF_SHIFT 30	  /* an element of the tree's root is for so much memory: */
#define JEMALLOC_LEAF_PAGES (1u << 18)
#define JEMALLOC_ROOT_NR    (1u << 18)
#define JEMALLOC_ROOT_BYTES (UINT64_C(8) * JEMALLOC_ROOT_NR)

/* cache_bin_preceding_junk: before the stacks of a thread's cache. */
#define JEMALLOC_MARK_BEFORE UINT64_C(0x7a7a7a7a7a7a7a7a)

/* struct edata_s: pages that are one block, or regions of one size. */
struct jemalloc_extent {
	uint64_t edata; /* its address */
	uint64_t address, size, region;
	uint64_t free[JEMALLOC_REGIONS / 64]; /* of a slab: bit i: region i is free */
	uint8_t szind, state;		      /* state 0: in use */
	bool slab, head;
};

/* jemalloc in one process. */
struct jemalloc {
	uint64_t from, to; /* the writable data of its file */
	uint64_t root;	   /* of arena_emap_global.rtree */
	uint64_t sizes[JEMALLOC_SIZES];
	unsigned int nr_sizes;
	struct mlk_heap_arena *bases; /* struct base_block_s, ascending */
	size_t nr_bases, room_bases;
	struct mlk_heap_arena *own; /* what holds no block: the same, and stacks of caches */
	size_t nr_own, room_own;
	uint64_t *arenas; /* arena_t */
	size_t nr_arenas, room_arenas;
	size_t tries;			 /* of what may be one */
	uint64_t lists;			 /* where an arena has tcache_ql; 0: not known yet */
	uint64_t stack_bytes;		 /* of all stacks of a cache; 0: none was met */
	struct jemalloc_extent *extents; /* in use at the last walk, by the address of edata */
	size_t nr_extents, room_extents;
	uint64_t unwalked; /* bytes, by the last walk */
	bool strange;	   /* there are caches, and they were not found */
};

/* Find the tree of pages in [@from, @to), writable data of a file and what is behind it.  Returns
 * 1, 0: it is not there, or of another layout; or -ENOMEM. */
int jemalloc_find(struct jemalloc *j, struct heap_memory *m, uint64_t from, uint64_t to);

/* The address of the struct edata_s of an element of a leaf of the tree; 0: there is none, or it
 * can be none. */
uint64_t jemalloc_edata(uint64_t element);

/* Read the struct edata_s at @edata.  Returns whether it can be one. */
bool jemalloc_read_extent(const struct jemalloc *j, const struct heap_memory *m, uint64_t edata,
			  struct jemalloc_extent *extent);

/* The same, of @bytes that were read there. */
bool jemalloc_take_extent(const struct jemalloc *j, const uint8_t *bytes,
			  struct jemalloc_extent *extent);

/* Does @extent, which is in use, have a size that fits its class? */
bool jemalloc_extent_fits(const struct jemalloc *j, const struct jemalloc_extent *extent);

/* The base block that holds @address, looked for if it is not known yet: at most @blocks times 2
 * MiB before.  Returns 1, 0: there is none; or -ENOMEM. */
int jemalloc_find_base(struct jemalloc *j, struct heap_memory *m, uint64_t address,
		       unsigned int blocks);

/* List all regions and large blocks in @list, sorted, in use or free.  Returns 0, -ENOMEM, -E2BIG
 * or -ECANCELED. */
int jemalloc_walk(struct jemalloc *j, struct heap_memory *m, struct heap_list *list);

/* For jemalloc_walk(), in jemalloc_cache.c: tell which blocks of @list, sorted, are in caches of
 * threads.  Returns 0 or -ENOMEM. */
int jemalloc_mark_cached(struct jemalloc *j, struct heap_memory *m, struct heap_list *list);

/* For jemalloc_walk(), in jemalloc_ended.c: note what memory of @list, which is free, has stacks of
 * caches that are gone.  Returns as jemalloc_mark_cached(). */
int jemalloc_find_ended(struct jemalloc *j, struct heap_memory *m, const struct heap_list *list);

/* Add what is free now, and was not at the last walk, to @list, in any order.  Returns 0, -ENOMEM
 * or -E2BIG. */
int jemalloc_look_at_free(struct jemalloc *j, struct heap_memory *m, struct heap_list *list);

/* For it, in jemalloc_cache.c: the blocks in caches.  Returns as it. */
int jemalloc_look_at_caches(struct jemalloc *j, struct heap_memory *m, struct heap_list *list);

/* Note that words in [@address, @address + @length) hold no block.  Returns 0 or -ENOMEM. */
int jemalloc_add_own(struct jemalloc *j, uint64_t address, uint64_t length);

/* Forget all. */
void jemalloc_release(struct jemalloc *j);

#endif
