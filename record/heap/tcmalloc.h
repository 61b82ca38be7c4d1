/* tcmalloc.h - gperftools' tcmalloc in another process, without symbols
 *
 * Names are those of its src/ in version 2.10: span.h, pagemap.h, common.h, central_freelist.h,
 * thread_cache.h, page_heap_allocator.h.  Its pages are of 8192 bytes, addresses have 48 bits.  All
 * that is read may change meanwhile, or be anything at all.
 */
#ifndef RECORD_HEAP_TCMALLOC_H
#define RECORD_HEAP_TCMALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/heap.h"
#include "record/heap/heap_list.h"
#include "record/heap/heap_memory.h"
#include "record/target/pages.h"

#define TCMALLOC_SIZES	      128 /* kClassSizesMax */
#define TCMALLOC_PAGE_SHIFT   13
#define TCMALLOC_PAGE	      (UINT64_C(1) << TCMALLOC_PAGE_SHIFT)
#define TCMALLOC_SPAN	      48   /* bytes of struct Span */
#define TCMALLOC_CACHE	      4160 /* and of class ThreadCache */
#define TCMALLOC_MOST_SLAB    (1u << 20)
#define TCMALLOC_MOST_OBJECTS (TCMALLOC_MOST_SLAB / 8)

/* PageMap2: an element of the root leads to a leaf for 2 GiB. */
#define TCMALLOC_LEAF_SHIFT 31
#define TCMALLOC_LEAF_PAGES (1u << (TCMALLOC_LEAF_SHIFT - TCMALLOC_PAGE_SHIFT))
#define TCMALLOC_LEAF_BYTES (UINT64_C(8) * TCMALLOC_LEAF_PAGES)
#define TCMALLOC_ROOT_NR    (1u << (48 - TCMALLOC_LEAF_SHIFT))
#define TCMALLOC_ROOT_BYTES (UINT64_C(8) * TCMALLOC_ROOT_NR)

/* CentralFreeListPadded, an array of them. */
#define TCMALLOC_CENTRAL 1216

#define TCMALLOC_HEADS 16 /* words that lead to a cache, */
#define TCMALLOC_POOLS 64 /* and what may be a PageHeapAllocator, at most */

/* struct Span: pages that are one block, objects of one size, or free. */
struct tcmalloc_span {
	uint64_t span; /* its address */
	uint64_t address, size;
	uint64_t objects;  /* the first free one */
	uint32_t refcount; /* objects that are not in that list */
	uint8_t sizeclass; /* 0: one block, or free */
	uint8_t location;  /* 0: in use */
	bool sample;	   /* @objects is where its stack is */
};

/* The objects of a slab: what it has, and which of them are in its list of free ones. */
struct tcmalloc_slab {
	uint64_t free[TCMALLOC_MOST_OBJECTS / 64 + 1];
	uint8_t bytes[TCMALLOC_MOST_SLAB];
};

/* tcmalloc in one process. */
struct tcmalloc {
	uint64_t from, to; /* the writable data of its file */
	uint64_t root;	   /* PageHeap::pagemap_.root_ */
	uint64_t central;  /* Static::central_cache_ */
	uint32_t sizes[TCMALLOC_SIZES], slabs[TCMALLOC_SIZES], moves[TCMALLOC_SIZES];
	unsigned int nr_sizes;
	uint64_t heads[TCMALLOC_HEADS]; /* as ThreadCache::thread_heaps_ */
	size_t nr_heads;
	uint64_t pools[TCMALLOC_POOLS];
	size_t nr_pools;
	uint64_t *caches; /* of threads, as they were last listed */
	size_t nr_caches, room_caches;
	struct tcmalloc_span *spans; /* in use at the last walk, by the address of the Span */
	size_t nr_spans, room_spans;
	struct mlk_heap_arena *own; /* what holds no block */
	size_t nr_own, room_own;
	uint64_t unwalked; /* bytes, by the last walk */
};

/* Find the map of pages and all else in [@from, @to), writable data of a file and what is behind
 * it.  Returns 1, 0: it is not there, or of another layout; or -ENOMEM. */
int tcmalloc_find(struct tcmalloc *t, struct heap_memory *m, uint64_t from, uint64_t to);

/* Read the Span at @span.  Returns whether it can be one. */
bool tcmalloc_read_span(const struct tcmalloc *t, const struct heap_memory *m, uint64_t span,
			struct tcmalloc_span *out);

/* The same, of the TCMALLOC_SPAN @bytes that were read there. */
bool tcmalloc_take_span(const struct tcmalloc *t, const uint8_t *bytes, struct tcmalloc_span *out);

/* Do both say the same? */
bool tcmalloc_same_span(const struct tcmalloc_span *a, const struct tcmalloc_span *b);

/* Read the bytes and the free objects, of @size bytes, of @span.  Returns whether all objects are
 * accounted for; if not, those are known that were met. */
bool tcmalloc_read_slab(const struct heap_memory *m, struct pages *pages,
			struct tcmalloc_slab *slab, const struct tcmalloc_span *span,
			uint64_t size);

/* Is object @i of the slab in its list? */
bool tcmalloc_is_free(const struct tcmalloc_slab *slab, uint64_t i);

/* Can a leaf of the map be at @leaf? */
bool tcmalloc_may_be_leaf(const struct heap_memory *m, uint64_t leaf);

/* Is there a thread's cache at @cache? */
bool tcmalloc_is_cache(const struct tcmalloc *t, const struct heap_memory *m, uint64_t cache);

/* List all objects and large blocks in @list, sorted, in use or free.  Returns 0, -ENOMEM, -E2BIG
 * or -ECANCELED. */
int tcmalloc_walk(struct tcmalloc *t, struct heap_memory *m, struct heap_list *list);

/* For tcmalloc_walk(), in tcmalloc_cache.c: tell which blocks of @list, sorted, are in the caches
 * of threads and sizes.  Returns 0 or -ENOMEM. */
int tcmalloc_mark_cached(struct tcmalloc *t, const struct heap_memory *m, struct heap_list *list);

/* Add what is free now, and was not at the last walk, to @list, in any order.  Returns 0, -ENOMEM
 * or -E2BIG. */
int tcmalloc_look_at_free(struct tcmalloc *t, struct heap_memory *m, struct heap_list *list);

/* For it, in tcmalloc_cache.c: the blocks in caches.  Returns as it. */
int tcmalloc_look_at_caches(struct tcmalloc *t, const struct heap_memory *m,
			    struct heap_list *list);

/* For tcmalloc_walk(), in tcmalloc_own.c: note what of tcmalloc's own memory is known, with the
 * @nr Spans at @spans, which are sorted, and no memory that blocks of @list have.  Returns 0 or
 * -ENOMEM. */
int tcmalloc_find_own(struct tcmalloc *t, const struct heap_memory *m, uint64_t *spans, size_t nr,
		      const struct heap_list *list);

/* Add to t->own that words in [@address, @address + @length) hold no block.  Returns 0 or -ENOMEM.
 */
int tcmalloc_add_own(struct tcmalloc *t, uint64_t address, uint64_t length);

/* Forget all. */
void tcmalloc_release(struct tcmalloc *t);

#endif
