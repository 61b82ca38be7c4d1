/* origins.h - where blocks of the kernel's come from */
#ifndef REPORT_ORIGINS_H
#define REPORT_ORIGINS_H

#include "format/trace.h"
#include "report/base/hash_index.h"

/* A copy of a struct mlk_origin. */
struct origin {
	uint32_t number, zero; /* for intern_pair() */
	uint32_t tgid, order;
	char *process, *cgroup, *cache, *flags; /* any bytes */
};

/* All zero: none are known. */
struct origins {
	INTERN_OF(struct origin);
};

/* Note @origin, which is copied; the first of a number counts.  Returns 0 or -ENOMEM. */
int origins_note(struct origins *origins, const struct mlk_origin *origin);

/* That with @number; NULL: none is known.  Valid until origins_note() or origins_release(). */
const struct origin *origins_get(const struct origins *origins, uint32_t number);

/* Release what @origins holds. */
void origins_release(struct origins *origins);

#endif
