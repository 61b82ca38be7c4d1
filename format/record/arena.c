/* arena.c - strings carved from blocks */
#include "format/record/arena.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_ROOM 65536u /* many times the longest string */

struct mlk_arena_block {
	struct mlk_arena_block *next;
	size_t used;
	char text[BLOCK_ROOM];
};

const char *mlk_arena_string(struct mlk_arena *a, const char *bytes, size_t len)
{
	struct mlk_arena_block *b = a->blocks;
	char *copy;

	if (!b || BLOCK_ROOM - b->used <= len) {
		b = len < BLOCK_ROOM ? malloc(sizeof(*b)) : NULL;
		if (!b) {
			a->failed = true;
			return "";
		}
		b->next = a->blocks;
		b->used = 0;
		a->blocks = b;
	}
	copy = b->text + b->used;
	if (len)
		memcpy(copy, bytes, len);
	copy[len] = '\0';
	b->used += len + 1;
	return copy;
}

static void free_blocks(struct mlk_arena_block *b)
{
	while (b) {
		struct mlk_arena_block *next = b->next;

		free(b);
		b = next;
	}
}

void mlk_arena_reset(struct mlk_arena *a)
{
	if (!a->blocks)
		return;
	free_blocks(a->blocks->next);
	a->blocks->next = NULL;
	a->blocks->used = 0;
}

void mlk_arena_release(struct mlk_arena *a)
{
	free_blocks(a->blocks);
	memset(a, 0, sizeof(*a));
}
