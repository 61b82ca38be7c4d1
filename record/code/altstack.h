/* altstack.h - may a process have signal handlers that run on a stack of their own? */
#ifndef RECORD_ALTSTACK_H
#define RECORD_ALTSTACK_H

#include <stdbool.h>

#include "record/target/link_map.h"
#include "record/target/target.h"

/* Does the program of @t, or one of its libraries, call sigaltstack()?  So it says by what it takes
 * from the C library, or if it is statically linked, has of it.  Go's does so without. */
bool altstack_is_used(const struct target *t, const struct loaded_objects *objects);

#endif
