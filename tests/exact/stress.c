/* stress.c - a program whose stacks are as odd as real ones get
 *
 * usage: stress [STEPS]   (instructions to go through one by one in each piece of code; 300)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "stress.h"

static __thread volatile int in_malloc, stepping_later;

int allocating(void)
{
	return in_malloc;
}

void step_later(void)
{
	stepping_later = 1;
}

FRAME void allocate(void)
{
	void *block;

	if (in_malloc)
		return;
	in_malloc = 1;
	block = malloc(17);
	KEEP(block);
	in_malloc = 0;
	if (stepping_later) {
		stepping_later = 0;
		raise(SIGUSR2);
	}
}

void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "stress: %s\n", what);
	exit(1);
}

int main(int argc, char **argv)
{
	stress_frames();
	stress_signals();
	stress_threads();
	stress_plugins();
	stress_exceptions();
	stress_steps(argc > 1 ? atoi(argv[1]) : 300);
	return 0;
}
