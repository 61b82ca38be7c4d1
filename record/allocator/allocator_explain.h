/* allocator_explain.h - messages about the allocators of a process */
#ifndef RECORD_ALLOCATOR_EXPLAIN_H
#define RECORD_ALLOCATOR_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "record/allocator/allocator.h"
#include "record/target/link_map.h"
#include "record/target/maps.h"

/* Say why nothing that @t has mapped, @maps, and loaded, @objects, has a malloc to be probed. */
void allocators_explain_none(const struct target *t, const struct maps *maps,
			     const struct loaded_objects *objects, bool is_static);

/* Say once that operators with return probes put the target at risk: no exception gets past one,
 * which libgcc's unwinder does not know. */
void allocators_tell_of_operators(const struct allocators *a);

/* Say once that a function is left alone because its returns are not known.  -ENOTSUP: it is
 * malloc, without which there is nothing to record. */
int allocators_tell_of_left(const struct allocators *a);

/* Say once that an object of @t, of which nothing is probed, has an allocator under another name:
 * its blocks will be missing, while those of the C library's are there.  @what_to_do is said before
 * the option that helps. */
void allocators_tell_of_others(const struct allocators *a, const struct target *t,
			       const struct loaded_objects *objects, const char *what_to_do);

/* Say once that malloc or free is probed where the kernel must single-step: ten times the cost. */
void allocators_tell_of_second_traps(const struct allocators *a);

/* Print the sites of @a to @out. */
void dry_run_print(FILE *out, const struct target *t, const struct allocators *a);

#endif
