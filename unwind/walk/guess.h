/* guess.h - the way on from code without call frame information */
#ifndef DWUNW_GUESS_H
#define DWUNW_GUESS_H

#include <stdbool.h>

#include "unwind/walk/step.h"
#include "unwind/walk/walk.h"

/* Take @w, a frame that keeps a frame pointer, to its caller.  False: rbp is none, or what is
 * beside it is no return address; then @w is as it was. */
bool dwunw_by_frame_pointer(const struct dwunw_pass *p, struct dwunw_walk *w);

/* Take @w, which has @size bytes below its return address, the uppermost of them rbp, to its
 * caller. False: there is no return address; then @w is as it was. */
bool dwunw_by_frame_size(const struct dwunw_pass *p, struct dwunw_walk *w, uint32_t size);

/* Take @w, in generated code that keeps no frame pointer, to what called such code last: the caller
 * with call frame information whose callee kept one, which another frame has saved.  False: there
 * is none; then @w is as it was. */
bool dwunw_by_saved_pointer(const struct dwunw_pass *p, struct dwunw_walk *w);

/* Take @w, the frame p->nr - 1, to a likely caller.  False: none is found; then @w is as it was. */
bool dwunw_guess_caller(const struct dwunw_pass *p, struct dwunw_walk *w);

#endif
