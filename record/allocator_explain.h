/* allocator_explain.h - what users are told of the allocators of a process */
#ifndef RECORD_ALLOCATOR_EXPLAIN_H
#define RECORD_ALLOCATOR_EXPLAIN_H

#include <stdbool.h>

#include "record/allocator.h"
#include "record/maps.h"
#include "record/objects.h"

/* Say why nothing that @t has mapped, @maps, and loaded, @objects, has a malloc to be probed. */
void allocators_explain_none(const struct target *t, const struct maps *maps,
			     const struct objects *objects, bool is_static);

/* Say once that probed operators put the target at risk: no exception gets past a return probe,
 * which libgcc's unwinder does not know. */
void allocators_tell_of_operators(const struct allocators *a);

/* Say once that malloc or free is probed where the kernel must single-step: ten times the cost. */
void allocators_tell_of_second_traps(const struct allocators *a);

#endif
