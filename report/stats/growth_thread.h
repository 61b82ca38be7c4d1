/* growth_thread.h - a thread that does growth.h's work beside the replay
 *
 * For growth.h alone.  What changes is written down, some thousand changes at a time, and taken in
 * by the thread in the same order: so the figures are those that there are without it.
 */
#ifndef REPORT_GROWTH_THREAD_H
#define REPORT_GROWTH_THREAD_H

#include "report/stats/growth.h"

struct growth_thread; /* opaque */

/* Begin to take changes into @growth, which belongs to the thread until growth_thread_end().  *@out
 * is NULL on failure.  Returns 0, -ENOMEM or -EAGAIN. */
int growth_thread_new(struct growth_thread **out, struct growth *growth);

/* The thread is to call growth_take() with @change, of which it keeps a copy. */
void growth_thread_changed(struct growth_thread *t, const struct live_change *change);

/* Wait until all changes were taken in, and release @t; NULL is allowed. */
void growth_thread_end(struct growth_thread *t);

#endif
