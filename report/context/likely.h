/* likely.h - which stack has likely allocated a block, by those of blocks that are like it
 *
 * Blocks are alike that have the same size, the same file's data at their first word, and the same
 * referrer; if too few have, the referrer is left out, and then the first word.  A stack is likely
 * if it allocated more than half of those.
 */
#ifndef REPORT_LIKELY_H
#define REPORT_LIKELY_H

#include "report/reach/verdicts.h"
#include "report/replay/replay.h"

struct likely; /* opaque */

/* Learn from the blocks of @leaks that were both recorded and walked over.  *@out is NULL on
 * failure.  Returns 0 or -ENOMEM. */
int likely_new(struct likely **out, const struct replay *leaks, const struct verdicts *verdicts);

#define LIKELY_NONE UINT32_MAX

/* The number in the replay of the stack that is likely that of @block; LIKELY_NONE: there is none.
 */
uint32_t likely_stack(const struct likely *l, const struct older_block *block);

/* How good that is: what is guessed of each known block by the others; what is guessed at all, and
 * of that what is right. */
void likely_test(const struct likely *l, struct live_amount *guessed, struct live_amount *right);

/* NULL is allowed. */
void likely_free(struct likely *l);

#endif
