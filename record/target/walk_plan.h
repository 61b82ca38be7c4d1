/* walk_plan.h - when a process's pages are walked through for its PSS
 *
 * A walk keeps the process from changing its mappings, for 60 to 100 ns a page and 1 us a mapping.
 * doc/decisions/0039.
 */
#ifndef RECORD_WALK_PLAN_H
#define RECORD_WALK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_LONGEST_NS 4000000u /* no walk that is likely to take longer */

/* What tells how long a walk takes. */
struct walk_size {
	uint64_t bytes;	 /* that are resident */
	size_t mappings; /* as many as are known */
};

/* All zero: no walk has been. */
struct walk_plan {
	uint64_t took_ns;      /* the last walk, */
	struct walk_size size; /* of this */
	uint64_t pause_ns;     /* it took too long: the next one is so much later, */
	uint64_t again_ns;     /* at this time; 0: it did not */
};

/* May a process be walked through at @now_ns that has @size?  After a walk that took too long, it
 * may if it has become smaller; or after a pause, which doubles each time, if it has not grown by
 * much. */
bool walk_is_allowed(const struct walk_plan *plan, const struct walk_size *size, uint64_t now_ns);

/* A walk of @size took @took_ns, and was over at @now_ns. */
void walk_note(struct walk_plan *plan, const struct walk_size *size, uint64_t took_ns,
	       uint64_t now_ns);

#endif
