/* progress_line.c - see progress_line.h */
#include "report/terminal/progress_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"

#define FIRST_NS 300000000 /* after which there is something to show */
#define AGAIN_NS 100000000

static int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void progress_line_begin(struct progress_line *meter, uint64_t whole, bool wanted)
{
	const char *terminal = getenv("TERM");

	*meter = (struct progress_line){
		.on = wanted && whole && isatty(STDERR_FILENO) && terminal &&
		      strcmp(terminal, "dumb") != 0,
		.whole = whole,
	};
	if (meter->on)
		meter->next_ns = clock_now_ns() + FIRST_NS;
}

void progress_line_move(void *arg, uint64_t done)
{
	struct progress_line *meter = arg;
	int64_t now;

	if (!meter->on)
		return;
	now = clock_now_ns();
	if (now < meter->next_ns)
		return;
	if (done > meter->whole)
		done = meter->whole;
	fprintf(stderr, "\rmleak: reading the trace: %2.0f %%\033[K",
		100 * (double)done / (double)meter->whole);
	fflush(stderr);
	log_over_line();
	meter->next_ns = now + AGAIN_NS;
}

void progress_line_end(struct progress_line *meter)
{
	log_end_line();
	fflush(stderr);
	meter->on = false;
}
