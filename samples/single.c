/* single.c - one leak among many balanced allocations */
#include "sample.h"

static FRAME void leak_here(struct leak_sum *sum)
{
	void *block = malloc(LEAK_BYTES);

	leak_add(sum, block, LEAK_BYTES);
}

/* Allocate and free in changing order, with sizes that the leak has too. */
FRAME void noise(size_t bytes)
{
	void *first = malloc(bytes);
	void *second = calloc(3, bytes);
	void *third = malloc(LEAK_BYTES);

	keep(first);
	keep(second);
	keep(third);
	free(second);
	free(first);
	free(third);
	free(NULL);
	AFTER_CALL();
}

FRAME void work(struct leak_sum *sum)
{
	for (int i = 0; i < LEAK_BLOCKS; i++) {
		for (size_t bytes = 1; bytes < 200000; bytes *= 3)
			noise(bytes);
		leak_here(sum);
	}
	AFTER_CALL();
}

int main(void)
{
	struct leak_sum sum = {0};

	work(&sum);
	answer(&sum, "main;work;leak_here");
	return 0;
}
