/* write_failed.h - what is said when the trace cannot be written */
#ifndef RECORD_WRITE_FAILED_H
#define RECORD_WRITE_FAILED_H

#include <stdbool.h>

/* Writing the trace to @path, "-" if it goes to a pipe, failed with @err: -errno or MLK_E_*.
 * @begun: the trace had begun, and what is there can be reported.  Logs one sentence. */
void write_failed_tell(const char *path, int err, bool begun);

#endif
