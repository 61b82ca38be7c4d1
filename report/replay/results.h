/* results.h - what a replay found, as bytes and back: kept beside the trace for the next report */
#ifndef REPORT_RESULTS_H
#define REPORT_RESULTS_H

#include "report/base/save.h"
#include "report/replay/replay.h"
#include "report/stats/growth.h"

/* At least so many bytes are appended by results_save(). */
uint64_t results_bytes(const struct replay *leaks);

/* Append what @leaks found of all of a trace, and @growth, after growth_finish(), or NULL.  Nothing
 * of it is chosen by an option.  to->failed: memory was short, or they are too many bytes. */
void results_save(const struct replay *leaks, const struct growth *growth, struct save *to);

/*
 * Read that in place of the second pass: @leaks has taken in the layout.  @growth is new; NULL: it
 * is not wanted, or not there.  Returns 0, -ENOMEM, or MLK_E_CORRUPT: they are of another trace, or
 * not to be read.  After a failure @leaks and @growth are of no use.
 */
int results_load(struct replay *leaks, struct growth *growth, struct load from);

#endif
