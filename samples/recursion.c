/* recursion.c - a leak below 200 frames of the same function */
#include "sample.h"

enum { DEPTH = 200 };

static FRAME void leak_here(struct leak_sum *sum)
{
	void *block = malloc(LEAK_BYTES);

	leak_add(sum, block, LEAK_BYTES);
}

/* The frames differ in nothing but their address: a report must not take them for a loop. */
FRAME void descend(int frames_left, struct leak_sum *sum)
{
	if (frames_left > 1)
		descend(frames_left - 1, sum);
	else
		leak_here(sum);
	AFTER_CALL();
}

int main(void)
{
	struct leak_sum sum = {0};

	for (int i = 0; i < LEAK_BLOCKS; i++)
		descend(DEPTH, &sum);

	say("answer: blocks=%lu bytes=%lu path=main;", sum.blocks, sum.bytes);
	for (int i = 0; i < DEPTH; i++)
		say("descend;");
	say("leak_here\n");
	return 0;
}
