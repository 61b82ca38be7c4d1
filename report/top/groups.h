/* groups.h - what threads and processes hold; of the kernel's memory, caches and control groups,
 * too
 */
#ifndef REPORT_TOP_GROUPS_H
#define REPORT_TOP_GROUPS_H

#include "report/base/hash_index.h"
#include "report/top/top_view.h"

/* What one of them holds. */
struct group {
	uint32_t tgid, tid; /* tid 0: all of a process; of the kernel's blocks, tgid is an origin's
			       number */
	struct live_amount now;
	char *name; /* as "sh (1234)" */
};

/* All of them, most bytes first. */
struct groups {
	INTERN_OF(struct group);
	enum group_kind kind;
	bool of_kernel;
	bool failed; /* memory was short */
};

/* Sum up what is outstanding by @kind.  Returns 0 or -ENOMEM. */
int groups_fill(struct groups *groups, const struct top_view *view, enum group_kind kind);

/* Static text: what the groups are, as "cache". */
const char *groups_title(const struct groups *groups);

/* Release what @groups holds. */
void groups_release(struct groups *groups);

#endif
