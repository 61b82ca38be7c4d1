/* told_pairs.c - malloc and free 20 frames deep, as often as a line of the standard input says
 *
 * usage: told_pairs <LINES
 * Each line is "BYTES PAIRS": so many pairs with blocks of that size.  What one takes is printed,
 * in nanoseconds of CPU time.  So one process can be measured with recorders that come and go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH 20
#define KEPT  16 /* blocks: what is freed is not what was allocated last */

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static __attribute__((noinline, noipa)) void loop(size_t bytes, unsigned long nr)
{
	void *kept[KEPT] = {0};

	for (unsigned long i = 0; i < nr; i++) {
		free(kept[i % KEPT]);
		kept[i % KEPT] = malloc(bytes);
	}
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
}

static __attribute__((noinline, noipa)) void descend(int depth, size_t bytes, unsigned long nr)
{
	if (depth == 0)
		loop(bytes, nr);
	else
		descend(depth - 1, bytes, nr);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}

int main(void)
{
	size_t bytes;
	unsigned long nr;

	while (scanf("%zu %lu", &bytes, &nr) == 2) {
		double start = cpu_ns();

		descend(DEPTH, bytes, nr);
		printf("%.2f\n", (cpu_ns() - start) / (double)nr);
		fflush(stdout);
	}
	return 0;
}
