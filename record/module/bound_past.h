/* bound_past.h - libraries whose calls of malloc lead to the C library, whatever was preloaded */
#ifndef RECORD_BOUND_PAST_H
#define RECORD_BOUND_PAST_H

#include <stdbool.h>

#include "record/target/maps.h"
#include "record/target/target.h"

/* Has the loader bound a call of malloc, or of another function that allocates, in the file of @m
 * to the C library, as it does with RTLD_DEEPBIND?  @maps are all mappings of @t. */
bool module_is_bound_past(const struct target *t, const struct maps *maps,
			  const struct mlk_mapping *m);

#endif
