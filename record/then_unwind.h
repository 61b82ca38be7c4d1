/* then_unwind.h - the process that unwinds a trace when its recording has ended: into the trace, or
 * beside it, as the first report would
 *
 * A recorder may not make files once it has given up its privileges.  So the process is made before
 * that, and sleeps until it is told the trace.  What it reads was written by the program that was
 * recorded: it has no more rights than `mleak unwind` needs.
 */
#ifndef RECORD_THEN_UNWIND_H
#define RECORD_THEN_UNWIND_H

#include <stdbool.h>

#include "record/options.h"

struct then_unwind; /* opaque */

/* Make it, if a recording as @o says may have something for it.  Call it before a command is
 * started and signals are blocked.  *@out is released with then_unwind_free(); it is NULL on
 * failure, and where nothing is to be done.  Returns 0, or -errno after one sentence was logged. */
int then_unwind_start(struct then_unwind **out, const struct record_opts *o);

/* The trace at @path is whole and closed: unwind it.  @hurry: nobody waits for what was not asked
 * for, which is left out.  Nor is that begun here: the command may go on, and Ctrl-C is its own.
 * Does not wait.  NULL is allowed. */
void then_unwind_begin(struct then_unwind *t, const char *path, bool hurry);

/* The command has ended: begin what is not begun, unless @hurry, and wait for its end; NULL is
 * allowed.  Signals are blocked: one that ends programs and comes now ends it, and the trace stays
 * as it was recorded.  Returns 0, or -1 after what is wrong was said: what was asked for was not
 * done. */
int then_unwind_finish(struct then_unwind *t, bool hurry);

/* End it if it was not begun, and release @t; NULL is allowed. */
void then_unwind_free(struct then_unwind *t);

#endif
