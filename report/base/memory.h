/* memory.h - how much memory a report may take
 *
 * A few hundred KiB of trace may describe many millions of live blocks.  So all that this process
 * allocates is limited by the kernel: beyond that it fails with -ENOMEM, wherever it is.
 */
#ifndef REPORT_MEMORY_H
#define REPORT_MEMORY_H

#include <stdint.h>

/* Allow @bytes more than are in use now; 0: half of the machine's memory, or of what its control
 * group may have.  Where the limit cannot be set there is none. */
void memory_limit(uint64_t bytes);

/* The bytes that memory_limit() allowed; 0: there is no limit. */
uint64_t memory_allowed(void);

/* Say that the report of @path, safe to print, takes more. */
void memory_explain(const char *path);

#endif
