/* waiting.h - says what it waits for while the probes are attached, if that takes long */
#ifndef RECORD_WAITING_H
#define RECORD_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: nothing is waited for. */
struct waiting {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const char *what; /* static text */
	size_t nr, of;	  /* the how manieth, of how many; 0: not told */
	uint64_t since_ns;
	bool begun, over, terminal;
};

/* From now on report on stderr when it takes longer than a second, in a thread of its own: what
 * waiting_for() named last.  Without memory for that, nothing is reported. */
void waiting_begin(struct waiting *w);

/* @what, a static text that goes on "waiting for", is waited for now: the @nr-th of @of, or 0. */
void waiting_for(struct waiting *w, const char *what, size_t nr, size_t of);

/* Nothing more is reported; what a terminal shows is taken away.  Allowed again, and without a
 * begin. */
void waiting_end(struct waiting *w);

#endif
