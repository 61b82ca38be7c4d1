/* reuse.h - which address an allocator returns next, doc/trace-format.md 4.4.1
 *
 * Most allocators return the block of a size that was freed last, or what lies behind the block
 * allocated last.  Writer and reader of a chunk keep the same blocks and lists of those.
 */
#ifndef MLK_REUSE_H
#define MLK_REUSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MLK_REUSE_CLASSES 1024 /* of sizes; a power of two */

/* A block that was allocated in the chunk. */
struct mlk_block_place {
	uint64_t addr;
	uint32_t below; /* block freed before this one, of its class; 0: none */
	uint32_t class;
};

/* The blocks have numbers from 1 on.  All zero: there are none. */
struct mlk_reuse {
	struct mlk_block_place *blocks; /* by number - 1 */
	size_t nr, room;
	uint32_t freed[MLK_REUSE_CLASSES]; /* block of each class that was freed last; 0: none */
	uint64_t behind;		   /* where the block that was allocated last ends */
};

/* Where a block may be. */
struct mlk_expected {
	uint64_t first, second;
};

/* A chunk begins; memory stays. */
void mlk_reuse_begin(struct mlk_reuse *r);
void mlk_reuse_release(struct mlk_reuse *r);

/* Append the block at @addr of @size bytes.  0 or -ENOMEM. */
int mlk_reuse_add(struct mlk_reuse *r, uint64_t addr, uint64_t size);

/* Bytes that a block of @size bytes takes, as glibc has it. */
static inline uint64_t mlk_reuse_taken(uint64_t size)
{
	return ((size < 24 ? 24 : size) + 23) & ~15ull;
}

/* The class of such a block. */
static inline uint32_t mlk_reuse_class(uint64_t size)
{
	return (uint32_t)(mlk_reuse_taken(size) >> 4) & (MLK_REUSE_CLASSES - 1);
}

/* Where a block of @size bytes is expected that is allocated now.  What was freed last of its class
 * is not expected again, wherever this block is. */
static inline struct mlk_expected mlk_reuse_expect(struct mlk_reuse *r, uint64_t size)
{
	uint32_t *last = &r->freed[mlk_reuse_class(size)];
	const struct mlk_block_place *b;

	if (!*last)
		return (struct mlk_expected){r->behind, r->behind};
	b = &r->blocks[*last - 1];
	*last = b->below;
	return (struct mlk_expected){b->addr, r->behind};
}

/* Block @number, of those there are, was freed. */
static inline void mlk_reuse_freed(struct mlk_reuse *r, size_t number)
{
	struct mlk_block_place *b = &r->blocks[number - 1];
	uint32_t *last = &r->freed[b->class];

	if (*last == number)
		return; /* of realloc there may be two records */
	b->below = *last;
	*last = (uint32_t)number;
}

#endif
