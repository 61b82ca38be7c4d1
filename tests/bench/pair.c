/* pair.c - CPU nanoseconds for each malloc(64)+free, measured by the program itself
 *
 * usage: pair NUMBER [SECONDS_TO_WAIT_FIRST]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Some frames, as real programs have them between main and an allocation. */
__attribute__((noinline, noclone)) static void pairs(long nr, int depth)
{
	if (depth > 0) {
		pairs(nr, depth - 1);
		__asm__ volatile("" ::: "memory"); /* no tail call */
		return;
	}
	for (long i = 0; i < nr; i++) {
		void *block = malloc(64);

		__asm__ volatile("" : "+r"(block)); /* or the compiler leaves both out */
		free(block);
	}
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
	double start;

	if (argc > 2)
		sleep((unsigned int)strtoul(argv[2], NULL, 10));
	start = cpu_ns();
	pairs(nr, 12);
	printf("%.1f\n", (cpu_ns() - start) / (double)nr);
	return 0;
}
