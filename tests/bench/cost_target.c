/* cost_target.c - CPU nanoseconds of each malloc(64)+free, 20 frames deep, as often as asked
 *
 * For each line with a number it makes so many pairs, and prints the CPU time of each.  With an
 * argument they are of operator new and delete, which a preloaded allocator brings.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FRAMES 20

static void *(*allocate)(size_t) = malloc;
static void (*release)(void *) = free;

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* 12 words each, which is about what a frame takes in real programs. */
__attribute__((noinline, noclone)) static double pairs(long nr, int depth)
{
	volatile long locals[8] = {nr};
	double start;

	if (depth > 0) {
		start = pairs(locals[0], depth - 1);
		__asm__ volatile("" ::: "memory"); /* no tail call */
		return start;
	}
	start = cpu_ns();
	for (long i = 0; i < nr; i++) {
		void *block = allocate(64);

		__asm__ volatile("" : "+r"(block)); /* or the compiler leaves both out */
		release(block);
	}
	return (cpu_ns() - start) / (double)nr;
}

int main(int argc, char **argv)
{
	char line[32];

	(void)argv;
	if (argc > 1) {
		*(void **)&allocate = dlsym(RTLD_DEFAULT, "_Znwm");
		*(void **)&release = dlsym(RTLD_DEFAULT, "_ZdlPv");
		if (!allocate || !release)
			return 1;
	}
	setvbuf(stdin, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%.1f\n", pairs(strtol(line, NULL, 10), FRAMES - 2));
		fflush(stdout);
	}
	return 0;
}
