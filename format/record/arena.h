/* arena.h - strings that live and die together */
#ifndef MLK_ARENA_H
#define MLK_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct mlk_arena_block;

/* All zero: without strings. */
struct mlk_arena {
	struct mlk_arena_block *blocks;
	bool failed; /* out of memory: a string was returned as "" */
};

/* A NUL-terminated copy of @len bytes, valid until reset or release; "" and failed without memory.
 */
const char *mlk_arena_string(struct mlk_arena *a, const char *bytes, size_t len);

/* Forget all strings, keeping some memory for those to come. */
void mlk_arena_reset(struct mlk_arena *a);
void mlk_arena_release(struct mlk_arena *a);

#endif
