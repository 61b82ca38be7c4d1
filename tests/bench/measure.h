/* measure.h - CPU time, medians, and a cache without what was in it */
#ifndef TESTS_BENCH_MEASURE_H
#define TESTS_BENCH_MEASURE_H

#include <stdlib.h>
#include <time.h>

#define LARGER_CACHE (96u << 20)

/* CPU time of this process in nanoseconds. */
static inline double clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of @nr values, which are sorted thereby. */
static inline double median(double *values, size_t nr)
{
	qsort(values, nr, sizeof(*values), compare_doubles);
	return values[nr / 2];
}

/* Fill all caches with something else. */
static inline void evict(void)
{
	static volatile char *larger;

	if (!larger)
		larger = malloc(LARGER_CACHE);
	for (size_t i = 0; larger && i < LARGER_CACHE; i += 64)
		larger[i]++;
}

#endif
