/* unwind_cold.h - how fast stacks are unwound that are new, or not in the cache */
#ifndef TESTS_BENCH_UNWIND_COLD_H
#define TESTS_BENCH_UNWIND_COLD_H

#include "tests/bench/unwind_trace.h"

/* Measure with the first @max_bytes of stacks of the trace at @path, whose places @known knows
 * already, and print it. */
void measure_cold(const char *path, size_t max_bytes, const struct recorded_trace *known);

#endif
