/* dwunw_stacks.h - part of dwunw.h: the stacks that were found, by their ids */
#ifndef DWUNW_PART_STACKS_H
#define DWUNW_PART_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "dwunw_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * All stacks that were found are kept until dwunw_free(), as a tree: what the callers have in
 * common is there once.  The id of a stack is that of its innermost frame's node, whose parent is
 * the id of its caller's stack.  An id below must be one that was returned.
 */

/* The frames of stack @id, innermost first, at most @max_frames of them.  Returns how many were
 * written. */
size_t dwunw_stack_frames(const struct dwunw *dw, uint32_t id, struct dwunw_frame *frames,
			  size_t max_frames);

/* The numbers of the frames of stack @id, as dwunw_stack_frames(): equal frames have one, whichever
 * stacks they are of, and whether or not they have DWUNW_FRAME_FLAG_PARTIAL. */
size_t dwunw_stack_places(const struct dwunw *dw, uint32_t id, uint32_t *places, size_t max_frames);

/* The number of @frame, from 1; 0 if no stack has it. */
uint32_t dwunw_frame_place(const struct dwunw *dw, const struct dwunw_frame *frame);

/* The stack of the caller of stack @id; without frames if @id has one frame, and 0 if it has none.
 */
uint32_t dwunw_stack_parent(const struct dwunw *dw, uint32_t id);

/* Why the unwinding of stack @id stopped. */
enum dwunw_status dwunw_stack_status(const struct dwunw *dw, uint32_t id);

/*
 * Find the id of the stack of these @nr frames (innermost first, 0 to DWUNW_MAX_FRAMES) and
 * @status, or add it.  DWUNW_FRAME_FLAG_PARTIAL is ignored: it follows from the status.
 * Returns 0, -ENOMEM, or -EINVAL for a status that there is not.
 */
int dwunw_stack_intern(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr,
		       enum dwunw_status status, uint32_t *id);

/* Find the id of the stack that is @frame called by the stack @caller, or add it; of @frame as
 * dwunw_stack_intern().  The status is that of @caller.  Returns 0 or -ENOMEM. */
int dwunw_stack_add(struct dwunw *dw, uint32_t caller, const struct dwunw_frame *frame,
		    uint32_t *id);

/* All ids returned are below this number. */
uint32_t dwunw_stack_limit(const struct dwunw *dw);

#ifdef __cplusplus
}
#endif

#endif
