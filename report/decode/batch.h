/* batch.h - the events of one chunk, decoded and unwound: what a worker leaves for the replay
 *
 * Each worker has an unwinder of its own, whose stacks have numbers of its own.  A batch contains
 * each of these that its worker did not send before, so that one more unwinder can have them all.
 * Where the trace has stacks that were unwound before, a batch contains all of its stacks.
 */
#ifndef REPORT_BATCH_H
#define REPORT_BATCH_H

#include "format/cache.h"
#include "format/reader.h"
#include "report/decode/stack_history.h"

/* What the replay needs of an event. */
struct batch_event {
	uint64_t time_ns, addr, size, alloc_id; /* as in struct mlk_event, as all but the stack */
	uint32_t tgid, tid;
	uint32_t stack; /* of an ALLOC: its id */
	uint32_t flags;
	uint32_t origin; /* of an ALLOC of the kernel's: its number; else 0 */
	uint8_t kind, func;
};

/* A stack that is sent for the first time. */
struct batch_stack {
	uint32_t id;	 /* the worker's, or the batch's own */
	uint32_t caller; /* its id, which was sent before; 0: there is no frame, only a status */
	enum dwunw_status status;
	struct dwunw_frame frame;
};

/* All zero is empty. */
struct batch {
	struct batch_event *events;
	size_t nr_events, events_room;
	struct batch_stack *stacks;
	size_t nr_stacks, stacks_room;
	struct mlk_entry chunk;	  /* of which these are */
	uint32_t chunk_crc;	  /* its payload's */
	struct mlk_entry unwound; /* the one in which its stacks are unwound; records 0: none is */
	bool in_cache;		  /* that one is in the cache beside the trace */
	struct mlk_cached
		kept; /* for the cache; not ready: it could not be, or was not asked for */
	/* The ids are those of its stacks alone, not of its worker: the trace contains them. */
	bool own_ids;
	bool of_kernel; /* its ALLOCs have origins */
	uint32_t *ids;	/* then: what they are in the unwinder that has all stacks, by id */
	size_t ids_room;
	struct stack_history *previous; /* what it leaves of the threads' stacks */
	struct mlk_condition condition;
	int err; /* 0, -ENOMEM, -errno of read(2) or MLK_E_CACHE: there is nothing behind these
		    events */
};

/* Make @batch empty, keeping its memory, and of which chunk it is. */
void batch_clear(struct batch *batch);

/* Append an event with what @event tells, and @stack.  Returns 0 or -ENOMEM. */
int batch_add_event(struct batch *batch, const struct mlk_event *event, uint32_t stack);

/* Append @stack.  Returns 0 or -ENOMEM. */
int batch_add_stack(struct batch *batch, const struct batch_stack *stack);

/* Give @dw the stacks of which @batch tells, and note in *@ids, which has room for *@room, what
 * they are there, by id.  Returns 0 or -ENOMEM. */
int batch_intern(const struct batch *batch, struct dwunw *dw, uint32_t **ids, size_t *room);

/* The event that @event was made of, except for its stack and its registers but the one that has
 * its origin. */
void batch_get_event(const struct batch_event *event, struct mlk_event *out);

/* Release what @batch holds, and leave it empty. */
void batch_release(struct batch *batch);

#endif
