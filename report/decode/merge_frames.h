/* merge_frames.h - frames of interpreted functions in place of those of the interpreter */
#ifndef REPORT_MERGE_FRAMES_H
#define REPORT_MERGE_FRAMES_H

#include "format/code.h"
#include "format/trace.h"
#include "report/trace/interpreted.h"
#include "unwind/dwunw.h"

#define MERGED_KEPT 4096u /* a power of two */

/* What was merged in a chunk, to be found again; all zero: nothing. */
struct merged_stacks {
	uint32_t round; /* of chunks */
	struct merged_stack {
		uint32_t round, frames, native, id;
	} kept[MERGED_KEPT];
};

/* A chunk begins: numbers of frames mean others. */
void merge_frames_begin(struct merged_stacks *merged);

/*
 * Put the interpreted frames of @event into its stack *@id of @dw: those that one call of the
 * interpreter has in place of its frame.  *@id is the new stack's then.  Returns 0 or -ENOMEM.
 */
int merge_frames(struct merged_stacks *merged, struct dwunw *dw, const struct interpreted *in,
		 const struct mlk_event *event, uint32_t *id);

#endif
