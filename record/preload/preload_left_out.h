/* preload_left_out.h - what of the processes with the preloaded library could not be recorded */
#ifndef RECORD_PRELOAD_LEFT_OUT_H
#define RECORD_PRELOAD_LEFT_OUT_H

#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"

/* Programs so far that have a malloc of their own, so that the library's is not called. */
uint64_t preload_passed_by(const struct preload_header *memory);

/* Programs so far that call functions of their allocator which the library does not wrap. */
uint64_t preload_calls_not_seen(const struct preload_header *memory);

/* Warn of those, and of processes that forbade themselves what recording takes. */
void preload_tell_left_out(const struct preload_header *memory);

/* Blocks of the command @pid, which has ended and was not waited for, were not checked for
 * overruns: say why. */
void preload_explain_unlooked(pid_t pid);

#endif
