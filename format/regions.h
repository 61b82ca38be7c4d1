/* regions.h - all that a process had mapped at a moment, doc/trace-format.md 4.15 */
#ifndef MLK_REGIONS_H
#define MLK_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"

#define MLK_MAX_REGIONS 262144u /* in a chunk */

/* All mappings of a process, executable or not, as /proc/PID/maps had them at time_ns. */
struct mlk_regions {
	uint32_t tgid;
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t left_out; /* mappings behind these that are not in the trace, for lack of room */
	size_t nr;
	const struct mlk_mapping *mappings; /* ascending, not overlapping; without ids.  Borrowed:
					       by the writer for the call, by the reader until the
					       next */
};

#endif
