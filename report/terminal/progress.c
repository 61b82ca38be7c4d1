/* progress.c - see meter.h */
#include "report/terminal/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS 300000000 /* after which there is something to show */
#define AGAIN_NS 100000000

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void meter_begin(struct meter *meter, uint64_t whole, bool wanted)
{
	const char *terminal = getenv("TERM");

	*meter = (struct meter){
		.on = wanted && whole && isatty(STDERR_FILENO) && terminal &&
		      strcmp(terminal, "dumb") != 0,
		.whole = whole,
	};
	if (meter->on)
		meter->next_ns = now_ns() + FIRST_NS;
}

void meter_move(void *arg, uint64_t done)
{
	struct meter *meter = arg;
	int64_t now;

	if (!meter->on)
		return;
	now = now_ns();
	if (now < meter->next_ns)
		return;
	if (done > meter->whole)
		done = meter->whole;
	fprintf(stderr, "\rmleak: reading the trace: %2.0f %%\033[K",
		100 * (double)done / (double)meter->whole);
	fflush(stderr);
	meter->drawn = true;
	meter->next_ns = now + AGAIN_NS;
}

void meter_end(struct meter *meter)
{
	if (meter->drawn) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	meter->on = meter->drawn = false;
}
