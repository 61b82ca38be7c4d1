/* stacks.h - what a trace's distinct stacks amount to, in each process
 *
 * The unwinder keeps the stacks themselves and has an id for each; here they have numbers, in the
 * order in which they were met, and totals.
 */
#ifndef REPORT_STACKS_H
#define REPORT_STACKS_H

#include "report/base/hash_index.h"
#include "report/live/live.h"
#include "unwind/dwunw.h"

/* To unwind; deeper stacks are incomplete.  A recorded stack, 64 KiB at most, hardly holds more: a
 * call takes 16 bytes where the stack is aligned as it should be. */
#define STACK_MAX_FRAMES 4096

/* A stack of a process, and what became of the blocks that it allocated. */
struct stack {
	uint32_t id;	   /* the unwinder's */
	uint32_t process;  /* that made them: number of live_process() */
	uint64_t allocs;   /* allocations made with it */
	uint64_t bytes;	   /* of these: bytes outstanding */
	uint64_t blocks;   /* and blocks */
	uint64_t suspects; /* of these blocks: they may have been freed */
	enum dwunw_status status;
	/* By stack_stats.h, of all of the trace: */
	struct live_amount allocated;
	struct live_amount freed; /* in any way: allocated less this is outstanding at the end */
	struct live_amount lost;  /* of what is outstanding: by context/stack_verdicts.h */
	struct live_amount peak;  /* outstanding when most bytes of all stacks were */
	struct live_amount now;	  /* outstanding at this moment of the replay */
	uint64_t temporary; /* blocks freed by their thread before it allocated or freed another,
			     * or as soon as stack_stats_set_temporary() says */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of its allocations */
	uint64_t peaks_seen;	    /* of stack_stats.c */
};

/* What is outstanding of @stack. */
static inline struct live_amount stack_outstanding(const struct stack *stack)
{
	return (struct live_amount){stack->blocks, stack->bytes};
}

/* All stacks, by number.  The counts in them are the caller's to change; the array moves with
 * stacks_add(). */
struct stacks {
	struct dwunw *dw;
	INTERN_OF(struct stack); /* by id and process */
	uint32_t *numbers;	 /* of process 0, by id, plus one; 0: not met */
	size_t nr_numbers;
	uint8_t *statuses; /* by id, plus one, of those and their callers; 0: not requested yet */
	size_t nr_statuses;
};

/* A table without any stack, of those that @dw (borrowed) finds.  *@out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int stacks_new(struct stacks **out, struct dwunw *dw);

/*
 * Find the stack of @process that the unwinder calls @id, or add it.  On success *@number is its
 * number, from 0 in the order of addition.  Returns 0 or -ENOMEM.
 */
int stacks_add(struct stacks *stacks, uint32_t id, uint32_t process, uint32_t *number);

/* The number of stack @id of the first process; UINT32_MAX: it was not added yet. */
uint32_t stacks_number(const struct stacks *stacks, uint32_t id);

/* Stack @number is to be looked at soon: have what is known of it brought near meanwhile. */
void stacks_expect(const struct stacks *stacks, uint32_t number);

/* Write the frames of stack @number, innermost first, to @frames.  Returns how many there are. */
size_t stacks_frames(const struct stacks *stacks, uint32_t number,
		     struct dwunw_frame frames[STACK_MAX_FRAMES]);

/* The same with the numbers of frames, see dwunw_stack_places(); at most @most of them. */
size_t stacks_places(const struct stacks *stacks, uint32_t number, uint32_t *places, size_t most);

/* The same as stacks_frames(), but only up to the first frame that is marked in @met, one bool for
 * each id that the unwinder has returned; those written are then marked.  So frames that many
 * stacks have come once, except for those of a stack that has more than there is room for. */
size_t stacks_frames_new(const struct stacks *stacks, uint32_t number, bool *met,
			 struct dwunw_frame frames[STACK_MAX_FRAMES]);

/* Release @stacks; NULL is allowed. */
void stacks_free(struct stacks *stacks);

#endif
