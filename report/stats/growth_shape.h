/* growth_shape.h - what the figures of growth.h say of a stack: a leak, a cache, a working set */
#ifndef REPORT_GROWTH_SHAPE_H
#define REPORT_GROWTH_SHAPE_H

#include <stdbool.h>

#include "report/stats/growth.h"

/* The first are those that most look like leaks. */
enum growth_shape {
	SHAPE_GROWING,
	SHAPE_UNCLEAR,
	SHAPE_LATE,
	SHAPE_UNEVEN,
	SHAPE_FILLING,
	SHAPE_REPLACING,
	SHAPE_STEADY,
	SHAPE_ONCE,
	SHAPE_NR,
};

/* The slices that are judged: those in which the chosen blocks can have been allocated. */
struct growth_span {
	size_t first, nr;
	uint64_t missing_ns; /* of the last one: the examined time ends before it does */
};

/* The slices of @growth in which what was @chosen can have been allocated.  Of --older there are
 * none in the last ones, which is no rest of theirs. */
struct growth_span growth_span_of(const struct growth *growth, const struct chosen *chosen);

/* Static text: "growing", ... */
const char *growth_shape_name(enum growth_shape shape);

/* Static text: what it means. */
const char *growth_shape_meaning(enum growth_shape shape);

/* Is the examined time too short for shapes that say what grows?  A rate of less says nothing of an
 * hour. */
bool growth_time_is_short(const struct chosen *chosen);

/* Can shapes say what grows?  Of a short time they cannot, nor of blocks that were given out from
 * some moment on: of these there was nothing before it. */
bool growth_shapes_tell(const struct chosen *chosen);

/* May as many older blocks have been freed as @stack has outstanding?  Their sizes are not known,
 * and nobody else is known to replace them. */
bool growth_may_replace(const struct growth_stack *stack);

/* The shape of @stack, of whose blocks the share @freed was freed. */
enum growth_shape growth_shape_of(const struct growth_stack *stack, const struct growth_span *span,
				  double freed);

/* By how many bytes a second @stack grew in the second half of the time, less what replaced older
 * blocks that were freed then; @width_ns is that of a slice. */
double growth_rate_of(const struct growth_stack *stack, const struct growth_span *span,
		      uint64_t width_ns);

#endif
