/* whole_chunks.h - whether a trace's events and stacks are whole, in a thread beside other work */
#ifndef REPORT_WHOLE_CHUNKS_H
#define REPORT_WHOLE_CHUNKS_H

#include <stdbool.h>

#include "format/reader.h"

struct whole_chunks; /* opaque: an examination */

/* Begin to compare the sums of all chunks of @trace with events or stacks, which is borrowed until
 * whole_chunks_end(), and may be used meanwhile.  *@out is NULL on failure.  Returns 0, -ENOMEM or
 * -errno of a system call. */
int whole_chunks_begin(struct whole_chunks **out, struct mlk_reader *trace);

/* Wait for the result, and release @w.  Is each chunk as its header says? */
bool whole_chunks_end(struct whole_chunks *w);

#endif
