/* limits.h - this process's resource limits, where they get in the way of a recording */
#ifndef RECORD_LIMITS_H
#define RECORD_LIMITS_H

#include <stdint.h>

/* Allow as many open files as can be: each recorded process takes some.  A command begun before
 * keeps its limit. */
void limits_raise_files(void);

/* Are they enough for eBPF?  Returns 0, or -EMFILE after one sentence was logged. */
int limits_check_files(void);

/* May a file of @bytes be made, as memory behind a descriptor is one, too?  Else the kernel would
 * send SIGXFSZ.  Returns 0 or -EFBIG. */
int limits_check_size(uint64_t bytes);

#endif
