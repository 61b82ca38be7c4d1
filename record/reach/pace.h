/* pace.h - how long to leave the processors to others after a piece of work
 *
 * Passes that follow each other at once take a third of two processors from a server and its client
 * that use both.  Where nobody waits for a processor, nothing is gained by a pause.
 */
#ifndef RECORD_REACH_PACE_H
#define RECORD_REACH_PACE_H

#include <stdint.h>

/* What a thread has had; times in nanoseconds. */
struct pace {
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t ran_ns;   /* of a processor, before */
	uint64_t slept_ns; /* since: by its own will; the caller adds to it */
};

/* The calling thread begins its work. */
struct pace pace_begin(void);

/* It has ended it.  Returns how long to do nothing; 0: nobody else wanted its processor. */
uint64_t pace_pause(const struct pace *p);

#endif
