/* frames.h - the interpreter's frames of ALLOCs in their columns, doc/trace-format.md 4.4.6
 *
 * A stack is a frame and the stack of its callers.  Each is told once in a chunk, and has a number.
 */
#ifndef MLK_EVENT_FRAMES_H
#define MLK_EVENT_FRAMES_H

#include "format/chunk/codec.h"
#include "format/code.h"
#include "format/event/dict.h"

/* Of a chunk being filled; all zero: nothing is. */
struct mlk_frames_enc {
	struct mlk_dict frames, stacks; /* numbers, by what they are made of */
	uint32_t nr_frames, nr_stacks;
	uint32_t skipped; /* ALLOCs before the first with frames */
	bool begun;
};

/* A chunk begins. */
void mlk_frames_enc_begin(struct mlk_frames_enc *f);
void mlk_frames_enc_release(struct mlk_frames_enc *f);

/* Append the frames of @ev, an ALLOC, to the columns @numbers and @stacks.  0 or -ENOMEM. */
int mlk_frames_encode(struct mlk_frames_enc *f, struct mlk_enc *numbers, struct mlk_enc *stacks,
		      const struct mlk_event *ev);

/* Of a chunk being read; all zero: nothing is. */
struct mlk_frames_dec {
	struct mlk_code_frame *frames;
	size_t nr_frames, room_frames;
	struct mlk_frames_stack {
		uint32_t caller, frame, depth;
	} * stacks; /* by number - 1 */
	size_t nr_stacks, room_stacks;
	struct mlk_code_frame last[MLK_MAX_CODE_FRAMES]; /* the frames returned last */
	uint32_t last_number;
};

/* A chunk begins. */
void mlk_frames_dec_begin(struct mlk_frames_dec *f);
void mlk_frames_dec_release(struct mlk_frames_dec *f);

/* Read the frames of @ev, the next ALLOC.  0 or -ENOMEM; what cannot be makes a column bad. */
int mlk_frames_decode(struct mlk_frames_dec *f, struct mlk_dec *numbers, struct mlk_dec *stacks,
		      struct mlk_event *ev);

#endif
