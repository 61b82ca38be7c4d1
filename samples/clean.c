/* clean.c - every kind of allocation, and every block is freed: nothing to report */
#include <stdint.h>

#include "sample.h"

static volatile size_t too_much = SIZE_MAX / 2;
static volatile size_t nothing;

static FRAME void plain(size_t bytes)
{
	void *first = malloc(bytes);
	void *second = calloc(3, bytes);

	keep(first);
	keep(second);
	free(first);
	free(second);
	free(NULL);
	AFTER_CALL();
}

FRAME void resized(size_t bytes)
{
	void *block = realloc(NULL, bytes);
	void *larger;

	keep(block);
	block = realloc(block, bytes / 2 + 1);
	keep(block);
	block = reallocarray(block, 10, bytes);
	keep(block);
	larger = realloc(block, too_much);
	keep(larger);
	free(larger ? larger : block);
	block = malloc(bytes);
	keep(block);
	keep(realloc(block, nothing));
	AFTER_CALL();
}

FRAME void aligned(size_t bytes)
{
	void *block = NULL;

	if (posix_memalign(&block, 64, bytes) == 0)
		free(block);
	if (posix_memalign(&block, 24 * nothing, bytes) == 0)
		free(block);
	AFTER_CALL();
}

/* Each frame holds a block while deeper ones come and go. */
static FRAME void descend(int frames_left)
{
	void *block = malloc(LEAK_BYTES);

	keep(block);
	if (frames_left > 1)
		descend(frames_left - 1);
	free(block);
	AFTER_CALL();
}

int main(void)
{
	struct leak_sum sum = {0};

	for (size_t bytes = 1; bytes < 200000; bytes += bytes / 2 + 1) {
		plain(bytes);
		resized(bytes);
		aligned(bytes);
		descend(50);
	}
	answer(&sum, "");
	return 0;
}
