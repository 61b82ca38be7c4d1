/* unwind_history.h - for each thread of a trace, what the unwinder knows of its last stack */
#ifndef REPORT_UNWIND_HISTORY_H
#define REPORT_UNWIND_HISTORY_H

#include <stdint.h>

#include "unwind/dwunw.h"

struct unwind_history; /* opaque */

/* None yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int unwind_history_new(struct unwind_history **out);

/* The history of thread @tid of process @tgid, a new one if it has none; valid until
 * unwind_history_forget() or unwind_history_free().  NULL when there are too many threads, or no
 * memory: the unwinder does without, only slower. */
struct dwunw_history *unwind_history_get(struct unwind_history *histories, uint32_t tgid,
					 uint32_t tid);

/* Release the history of a thread that had an event which the unwinder did not see. */
void unwind_history_forget(struct unwind_history *histories, uint32_t tgid, uint32_t tid);

/* Release the histories of process @tgid, which has ended. */
void unwind_history_end(struct unwind_history *histories, uint32_t tgid);

/* Release those of all threads if there are many: a new chunk begins, which tells all stacks anew.
 */
void unwind_history_trim(struct unwind_history *histories);

/* Release @histories; NULL is allowed. */
void unwind_history_free(struct unwind_history *histories);

#endif
