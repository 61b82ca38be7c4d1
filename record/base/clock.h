/* clock.h - the time, as the kernel's notices and the trace have it */
#ifndef RECORD_CLOCK_H
#define RECORD_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time of @clock, in nanoseconds. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, in nanoseconds. */
static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
