/* aligned.c - leaks by posix_memalign and calloc, and calls of them that fail */
#include <stdint.h>

#include "sample.h"

static volatile size_t too_much = SIZE_MAX / 2;
static volatile size_t no_power_of_two = 24;

static FRAME void leak_posix_memalign(struct leak_sum *sum)
{
	void *block = NULL;

	if (posix_memalign(&block, 64, 53) == 0)
		leak_add(sum, block, 53);
}

/* It gives no block, and leaves alone where the block would have been stored. */
FRAME void fail_posix_memalign(struct leak_sum *sum)
{
	void *block = sum;

	if (posix_memalign(&block, no_power_of_two, LEAK_BYTES) == 0)
		leak_add(sum, block, LEAK_BYTES);
	if (posix_memalign(&block, 64, too_much) == 0)
		leak_add(sum, block, too_much);
	AFTER_CALL();
}

FRAME void leak_calloc(struct leak_sum *sum)
{
	void *block = calloc(3, LEAK_BYTES);

	leak_add(sum, block, 3 * LEAK_BYTES);
}

FRAME void fail_calloc(struct leak_sum *sum)
{
	void *block = calloc(too_much, LEAK_BYTES);

	leak_add(sum, block, LEAK_BYTES);
}

FRAME void balance(void)
{
	void *block = NULL;

	if (posix_memalign(&block, 64, 53) == 0)
		free(block);
	AFTER_CALL();
}

int main(void)
{
	static const struct {
		void (*leak)(struct leak_sum *);
		void (*fail)(struct leak_sum *);
		const char *path;
	} kinds[] = {
		{leak_posix_memalign, fail_posix_memalign, "main;leak_posix_memalign"},
		{leak_calloc, fail_calloc, "main;leak_calloc"},
	};

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		struct leak_sum sum = {0};

		for (int i = 0; i < LEAK_BLOCKS; i++) {
			balance();
			kinds[kind].fail(&sum);
			kinds[kind].leak(&sum);
		}
		answer(&sum, kinds[kind].path);
	}
	return 0;
}
