/* write_overruns.h - blocks that the preloaded library found written beyond their bounds: into the trace
 *
 * What was found comes first, the stack of who found it right behind, by the same thread.
 */
#ifndef RECORD_FINDINGS_H
#define RECORD_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/libpreload/overrun.h"

#define FINDINGS_MAX 64 /* threads that are between the two */

/* How many there were, and those whose stacks are still to come; all zero: none. */
struct findings {
	uint64_t found; /* of all so far */
	size_t nr;
	struct findings_waiting {
		uint64_t id; /* process and thread */
		struct mlk_overrun overrun;
		uint8_t bytes[OVERRUN_BYTES];
	} waiting[FINDINGS_MAX];
};

/* These return 0, or the error of the writer. */

/* @event was found at @time_ns; one that its thread found before has no stack. */
int findings_note(struct findings *o, struct mlk_writer *w, const struct event_overrun *event,
		  uint64_t time_ns);

/* @stack, an MLK_ALLOC, is that of the overrun which its thread found last: write it. */
int findings_write(struct findings *o, struct mlk_writer *w, const struct mlk_event *stack);

/* No more stacks come: write those that wait without one. */
int findings_flush(struct findings *o, struct mlk_writer *w);

#endif
