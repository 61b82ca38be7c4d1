/* stacks.h - the distinct stacks of a trace, each stored once
 *
 * Stacks that begin alike share what is alike: their frames are the nodes of a tree, callers first.
 */
#ifndef REPORT_STACKS_H
#define REPORT_STACKS_H

#include "unwind/dwunw.h"

struct stacks; /* opaque */

#define STACK_MAX_FRAMES 1024 /* to unwind; deeper stacks are incomplete */

struct stack {
	uint64_t allocs; /* allocations made with it */
	uint64_t bytes;	 /* of these: bytes outstanding */
	uint64_t blocks; /* and blocks */
	enum dwunw_status status;
	uint32_t node; /* its innermost frame, for stacks.c */
};

/* A table without any stack.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int stacks_new(struct stacks **out);

/*
 * Find the stack of these @nr frames (innermost first, 0 to STACK_MAX_FRAMES) and this status, or
 * add it.  On success *@number is its number, from 0 in the order of addition.
 * Returns 0 or -ENOMEM.
 */
int stacks_intern(struct stacks *stacks, const struct dwunw_frame *frames, size_t nr,
		  enum dwunw_status status, uint32_t *number);

/* Stacks in the table. */
size_t stacks_nr(const struct stacks *stacks);

/* Frames stored for all of them. */
size_t stacks_nr_nodes(const struct stacks *stacks);

/* Stack @number (below stacks_nr()), valid until the next stacks_intern().  The counts in it are
 * the caller's to change; a new stack has zeros. */
struct stack *stacks_get(const struct stacks *stacks, uint32_t number);

/* Write the frames of stack @number, innermost first, to @frames.  Returns how many there are. */
size_t stacks_frames(const struct stacks *stacks, uint32_t number,
		     struct dwunw_frame frames[STACK_MAX_FRAMES]);

/* Release @stacks; NULL is allowed. */
void stacks_free(struct stacks *stacks);

#endif
