/* unwind_history.h - for each thread of a trace, what the unwinder knows of its last stack */
#ifndef REPORT_HISTORIES_H
#define REPORT_HISTORIES_H

#include <stdint.h>

#include "unwind/dwunw.h"

struct histories; /* opaque */

/* None yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int histories_new(struct histories **out);

/* The history of thread @tid of process @tgid, a new one if it has none; valid until
 * histories_forget() or histories_free().  NULL when there are too many threads, or no memory: the
 * unwinder does without, only slower. */
struct dwunw_history *histories_get(struct histories *histories, uint32_t tgid, uint32_t tid);

/* Release the history of a thread that had an event which the unwinder did not see. */
void histories_forget(struct histories *histories, uint32_t tgid, uint32_t tid);

/* Release those of all threads if there are many: a new chunk begins, which tells all stacks anew.
 */
void histories_trim(struct histories *histories);

/* Release @histories; NULL is allowed. */
void histories_free(struct histories *histories);

#endif
