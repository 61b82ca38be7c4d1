/* twin.h - what twin_a.so and twin_b.so have in common: the names of their functions */
#ifndef TWIN_H
#define TWIN_H

#include "sample.h"

/* Leak @blocks blocks of TWIN_BYTES, which each library has its own, along twin_run;init. */
void twin_run(struct leak_sum *sum, int blocks);

static FRAME void init(struct leak_sum *sum)
{
	void *block = malloc(TWIN_BYTES);

	leak_add(sum, block, TWIN_BYTES);
}

FRAME void twin_run(struct leak_sum *sum, int blocks)
{
	for (int i = 0; i < blocks; i++)
		init(sum);
	AFTER_CALL();
}

#endif
