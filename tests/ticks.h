/* ticks.h - for targets that do the same each tick, and answer each line of stdin */
#ifndef TESTS_TICKS_H
#define TESTS_TICKS_H

#include <poll.h>
#include <time.h>
#include <unistd.h>

static long ticks_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Call @one_tick, which counts in *@tick, each @us until stdin ends.  @answer is called for each
 * line of it; *@latest is how many ticks it was late at most since the one before. */
static void ticks_run(long us, const unsigned long *tick, unsigned long *latest,
		      void (*one_tick)(void), void (*answer)(void))
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	long begun = ticks_now_us() - (long)*tick * us;
	char line[64];

	for (;;) {
		unsigned long due = (unsigned long)((ticks_now_us() - begun) / us);

		if (due > *tick && due - *tick > *latest)
			*latest = due - *tick;
		/* what is overdue is made up for */
		while (*tick <= due)
			one_tick();
		if (poll(&in, 1, us < 1000 ? 1 : (int)(us / 1000)) <= 0)
			continue;
		if (read(0, line, sizeof(line)) <= 0)
			return;
		answer();
		*latest = 0;
	}
}

#endif
