/* no_events.h - why not one event was seen: nothing at all must never look like success */
#ifndef RECORD_QUIET_H
#define RECORD_QUIET_H

#include "record/allocator/allocator.h"

/* CPU time that @t has used so far, in clock ticks. */
uint64_t quiet_cpu_ticks(const struct target *t);

/* Say on stderr which of the known causes it is that nothing of @t came from the functions of @a;
 * @ticks is its CPU time when they were probed. */
void quiet_explain(const struct target *t, const struct allocators *a, uint64_t ticks);

#endif
