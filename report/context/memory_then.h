/* memory_then.h - the samples of memory that a report is about: those of the chosen process, or of
 * all */
#ifndef REPORT_MEMORY_THEN_H
#define REPORT_MEMORY_THEN_H

#include "report/context/report_data.h"

/* The sum of @value at @until_ns (CLOCK_MONOTONIC), in *@bytes.  If all processes had ended by
 * then, but not at @from_ns, it is what there was before the last one ended.  False: it is not
 * known. */
bool memory_then(const struct report_data *export, enum mlk_memory_value value, uint64_t from_ns,
		 uint64_t until_ns, uint64_t *bytes);

/* Is RSS known at any time? */
bool memory_is_known(const struct report_data *export);

/* Was anything in swap at any time? */
bool memory_was_swapped(const struct report_data *export);

#endif
