/* groups.h - what threads and processes hold; of the kernel's memory, caches and control groups,
 * too
 */
#ifndef REPORT_TOP_GROUPS_H
#define REPORT_TOP_GROUPS_H

#include "report/top/holdings.h"
#include "report/top/top_view.h"

/* What one of them holds. */
struct group {
	uint32_t tgid, tid; /* tid 0: all of a process; of the kernel's blocks, tgid is an origin's
			       number */
	struct live_amount now;
	uint64_t born_us; /* as of a holding */
	uint64_t age_ns;  /* mean, of what is outstanding */
	double rate;	  /* net bytes a second since the moment before, if that was looked at */
	char *name;	  /* as "sh (1234)" */
};

/* All of them. */
struct groups {
	INTERN_OF(struct group);
	enum group_kind kind;
	bool of_kernel;
	bool rates;  /* are known */
	bool failed; /* memory was short */
};

/* Sum up @now by @kind, most bytes first.  @before is what was held before, or NULL: then rates are
 * not known.  Returns 0 or -ENOMEM. */
int groups_fill(struct groups *groups, const struct top_view *view, enum group_kind kind,
		const struct holdings *now, const struct holdings *before);

/* Sort them anew. */
void groups_sort(struct groups *groups, enum top_sort sort);

/* Write to @in, which has room for one of each of the threads of @holdings, whether it is part of
 * @group of @kind.  Returns 0 or -ENOMEM. */
int group_threads(const struct group *group, enum group_kind kind, const struct top_view *view,
		  const struct holdings *holdings, bool *in);

/* Static text: what the groups are, as "cache". */
const char *groups_title(const struct groups *groups);

/* Release what @groups holds. */
void groups_release(struct groups *groups);

#endif
