/* then_unwind.h - the process that unwinds a trace when its recording has ended
 *
 * A recorder may not make files once it has given up its privileges.  So the process is made before
 * that, and sleeps until it is told the trace.  What it reads was written by the program that was
 * recorded: it has no more rights than `mleak unwind` needs.
 */
#ifndef RECORD_THEN_UNWIND_H
#define RECORD_THEN_UNWIND_H

#include <stdbool.h>

struct then_unwind; /* opaque */

/* Make it; @drop_raw: the trace is to keep no registers and stacks.  Call it before a command is
 * started and signals are blocked.  *@out is released with then_unwind_free(); it is NULL on
 * failure.  Returns 0, or -errno after one sentence was logged. */
int then_unwind_start(struct then_unwind **out, bool drop_raw);

/* The trace at @path is whole and closed: unwind it.  Does not wait.  NULL is allowed. */
void then_unwind_begin(struct then_unwind *t, const char *path);

/* If it was begun, wait for its end; NULL is allowed.  Signals are blocked: one that ends programs
 * and comes now ends it, and the trace stays as it was recorded.  Returns 0, or -1 after what is
 * wrong was said. */
int then_unwind_finish(struct then_unwind *t);

/* End it if it was not begun, and release @t; NULL is allowed. */
void then_unwind_free(struct then_unwind *t);

#endif
