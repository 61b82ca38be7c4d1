/* live_save.h - the blocks of a trace that was replayed, as bytes and back */
#ifndef REPORT_LIVE_SAVE_H
#define REPORT_LIVE_SAVE_H

#include "report/base/save.h"
#include "report/live/live.h"

/* At least so many bytes are appended by live_save(). */
uint64_t live_save_bytes(const struct live *live);

/* Append what @live knows after live_finish(); none of its processes was forgotten. */
void live_save(const struct live *live, struct save *to);

/* Read that into @live, which is new; stacks have numbers below @nr_stacks.  No change is told.
 * Returns 0, -ENOMEM, or MLK_E_CORRUPT: @live is of no use then. */
int live_load(struct live *live, struct load *from, size_t nr_stacks);

#endif
