/* older_stacks.h - blocks whose allocation is not in the trace, as if they had stacks
 *
 * In place of one they have a frame that says so, and below it the bytes that malloc was asked for,
 * as far as these follow from the block.
 */
#ifndef REPORT_OLDER_STACKS_H
#define REPORT_OLDER_STACKS_H

#include "report/context/verdict_choice.h"
#include "report/replay/replay.h"

/* Count those that @choice wants as outstanding of such stacks of @leaks; none if it wants no
 * verdict.  Returns 0 or -ENOMEM. */
int older_stacks_add(struct replay *leaks, const struct verdict_choice *choice);

#endif
