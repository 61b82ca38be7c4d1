/* guess.h - a likely caller where there is no call frame information */
#ifndef DWUNW_GUESS_H
#define DWUNW_GUESS_H

#include <stdbool.h>

#include "unwind/walk/step.h"
#include "unwind/walk/walk.h"

/* Go on from the frame p->nr - 1, which @w is at, to a likely caller.  Returns false if none is
 * found; then @w is as it was. */
bool dwunw_guess(const struct dwunw_pass *p, struct dwunw_walk *w);

#endif
