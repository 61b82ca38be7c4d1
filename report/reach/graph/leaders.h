/* leaders.h - of blocks that no root holds, the few from which all of them are reached */
#ifndef REPORT_LEADERS_H
#define REPORT_LEADERS_H

#include "report/reach/graph/reach_pass.h"

/* Blocks; all zero: none. */
struct leaders {
	uint32_t *all; /* to be freed, also after a failure */
	size_t nr, room;
};

/*
 * Find those of the blocks whose @classes is @class, between which all words of @graph count: all
 * to which none of them points, and of each cycle one.  What a leader reaches is not reached by
 * others of the same cycle or behind it only.  Returns 0 or -ENOMEM.
 */
int leaders_find(struct leaders *l, const struct reach_graph *graph, const uint8_t *classes,
		 uint8_t class);

#endif
