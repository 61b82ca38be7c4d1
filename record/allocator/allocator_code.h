/* allocator_code.h - where a process's allocators and its own code lie, for the BPF programs: by
 * that they tell an allocator's mappings from the program's */
#ifndef RECORD_ALLOCATOR_CODE_H
#define RECORD_ALLOCATOR_CODE_H

#include <stdbool.h>

#include "record/allocator/allocator.h"
#include "record/target/link_map.h"

/* Set a->code by the objects of @a and those that @t has loaded, @objects. */
void allocators_set_code(struct allocators *a, const struct target *t,
			 const struct loaded_objects *objects, bool is_static);

#endif
