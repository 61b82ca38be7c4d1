/* first.c - a leak before main() begins, in a constructor of the program */
#include "sample.h"

static struct leak_sum sum;

static FRAME void leak_here(void)
{
	void *block = malloc(LEAK_BYTES);

	leak_add(&sum, block, LEAK_BYTES);
}

__attribute__((constructor)) static FRAME void before_main(void)
{
	leak_here();
	AFTER_CALL();
}

int main(void)
{
	answer(&sum, "before_main;leak_here");
	return 0;
}
