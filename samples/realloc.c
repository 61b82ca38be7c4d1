/* realloc.c - leaks that went through realloc: grown, shrunk, moved, refused */
#include <stdint.h>

#include "sample.h"

/* volatile: a constant this large makes the compiler warn, and fold the call. */
static volatile size_t too_much = SIZE_MAX / 2;
static volatile size_t nothing;

static FRAME void *resize(void *block, size_t bytes)
{
	void *resized = realloc(block, bytes);

	keep(resized);
	return resized;
}

/* Grown step by step; only the last size is leaked. */
FRAME void leak_grown(struct leak_sum *sum)
{
	void *block = malloc(LEAK_BYTES);
	size_t bytes;

	keep(block);
	for (bytes = LEAK_BYTES; bytes < 5000; bytes = bytes * 2 + 1)
		block = resize(block, bytes);
	leak_add(sum, block, bytes / 2);
}

/* A neighbour stands behind the block, so it has to move to grow. */
FRAME void leak_moved(struct leak_sum *sum)
{
	void *block = malloc(61);
	void *neighbour = malloc(61);

	keep(block);
	keep(neighbour);
	block = realloc(block, 10007);
	leak_add(sum, block, 10007);
	free(neighbour);
	AFTER_CALL();
}

/* Fits where it stands: the same address is released and given out again. */
FRAME void leak_in_place(struct leak_sum *sum)
{
	void *block = malloc(1031);

	keep(block);
	block = realloc(block, 1021);
	leak_add(sum, block, 1021);
}

/* The realloc fails, so the old block lives on, as the one that malloc gave. */
FRAME void leak_refused(struct leak_sum *sum)
{
	void *block = malloc(53);
	void *larger;

	keep(block);
	larger = realloc(block, too_much);
	if (!larger)
		leak_add(sum, block, 53);
	free(larger);
	AFTER_CALL();
}

FRAME void leak_from_null(struct leak_sum *sum)
{
	void *block = realloc(NULL, 59);

	leak_add(sum, block, 59);
}

/* realloc to nothing is free(); it returns NULL, which is no failure. */
FRAME void balance(void)
{
	void *block = malloc(LEAK_BYTES);

	keep(block);
	block = realloc(block, nothing);
	keep(block);
	AFTER_CALL();
}

int main(void)
{
	static const struct {
		void (*leak)(struct leak_sum *);
		const char *path;
	} kinds[] = {
		/* clang-format off */
		{leak_grown, "main;leak_grown;resize"},
		{leak_moved, "main;leak_moved"},
		{leak_in_place, "main;leak_in_place"},
		{leak_refused, "main;leak_refused"},
		{leak_from_null, "main;leak_from_null"},
		/* clang-format on */
	};

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		struct leak_sum sum = {0};

		for (int i = 0; i < LEAK_BLOCKS; i++) {
			balance();
			kinds[kind].leak(&sum);
		}
		answer(&sum, kinds[kind].path);
	}
	return 0;
}
