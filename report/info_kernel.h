/* info_kernel.h - what `mleak info` counts in a trace of the kernel's memory */
#ifndef REPORT_INFO_KERNEL_H
#define REPORT_INFO_KERNEL_H

#include "format/reader.h"
#include "report/base/hash_index.h"
#include "report/trace/origins.h"

/* A number, or two halves of a hash: for intern_pair(). */
struct info_number {
	uint32_t low, high;
};

/* What its allocations are, all in all; all zero at first. */
struct info_kernel {
	struct origins origins;
	INTERN_OF(struct info_number) used;   /* numbers of the origins of allocations */
	INTERN_OF(struct info_number) stacks; /* hashes */
};

/* How many there are of each. */
struct info_sums {
	size_t stacks, caches, processes, cgroups;
};

/* Note @record, an MLK_RECORD_EVENT or MLK_RECORD_ORIGIN; nothing of others.  Returns 0 or
 * -ENOMEM. */
int info_kernel_note(struct info_kernel *k, const struct mlk_record *record);

/* Count in *@sums the stacks of the allocations, and of their origins what is known.  Returns 0 or
 * -ENOMEM. */
int info_kernel_sum(const struct info_kernel *k, struct info_sums *sums);

/* Release what @k holds. */
void info_kernel_release(struct info_kernel *k);

#endif
