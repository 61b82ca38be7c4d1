/* no_events.h - why not one event was seen */
#ifndef RECORD_NO_EVENTS_H
#define RECORD_NO_EVENTS_H

#include <stdint.h>

struct target;
struct allocators;

/* CPU time that @t has used so far, in clock ticks. */
uint64_t no_events_cpu_ticks(const struct target *t);

/* Say on stderr which of the known causes it is that nothing of @t came from the functions of @a;
 * @ticks is its CPU time when they were probed. */
void no_events_explain(const struct target *t, const struct allocators *a, uint64_t ticks);

#endif
