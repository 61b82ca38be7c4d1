/* overruns.h - blocks that the preloaded library found written beyond their bounds: into the trace
 *
 * What was found comes first, the stack of who found it right behind, by the same thread.
 */
#ifndef RECORD_OVERRUNS_H
#define RECORD_OVERRUNS_H

#include <stddef.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/preload/overrun.h"

#define OVERRUNS_MAX 64 /* threads that are between the two */

/* Those whose stacks are still to come; all zero: none. */
struct overruns {
	size_t nr;
	struct overruns_waiting {
		uint64_t id; /* process and thread */
		struct mlk_overrun overrun;
		uint8_t bytes[OVERRUN_BYTES];
	} waiting[OVERRUNS_MAX];
};

/* These return 0, or the error of the writer. */

/* @event was found at @time_ns; one that its thread found before has no stack. */
int overruns_note(struct overruns *o, struct mlk_writer *w, const struct event_overrun *event,
		  uint64_t time_ns);

/* @stack, an MLK_ALLOC, is that of the overrun which its thread found last: write it. */
int overruns_write(struct overruns *o, struct mlk_writer *w, const struct mlk_event *stack);

/* No more stacks come: write those that wait without one. */
int overruns_flush(struct overruns *o, struct mlk_writer *w);

#endif
