/* overrun_list.h - blocks that the preloaded library found written beyond their bounds: into the
 * trace
 *
 * What was found comes first, the stack of the thread that found it right behind, by the same
 * thread.
 */
#ifndef RECORD_OVERRUN_LIST_H
#define RECORD_OVERRUN_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/libpreload/overrun.h"

#define OVERRUNS_WAITING 64 /* threads that are between the two */

/* How many there were, and those whose stacks are still to come; all zero: none. */
struct overrun_list {
	uint64_t found; /* of all so far */
	size_t nr;
	struct overrun_list_waiting {
		uint64_t id; /* process and thread */
		struct mlk_overrun overrun;
		uint8_t bytes[OVERRUN_BYTES];
	} waiting[OVERRUNS_WAITING];
};

/* These return 0, or the error of the writer. */

/* @event was found at @time_ns; one that its thread found before has no stack. */
int overrun_list_add(struct overrun_list *o, struct mlk_writer *w,
		     const struct event_overrun *event, uint64_t time_ns);

/* @stack, an MLK_ALLOC, is that of the overrun which its thread found last: write it. */
int overrun_list_write(struct overrun_list *o, struct mlk_writer *w, const struct mlk_event *stack);

/* No more stacks come: write those that wait without one. */
int overrun_list_flush(struct overrun_list *o, struct mlk_writer *w);

#endif
