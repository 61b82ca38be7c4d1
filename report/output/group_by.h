/* group_by.h - what is outstanding by thread, process, module, size, age, function or source file;
 * the kernel's also by cgroup, cache, order or allocation flags */
#ifndef REPORT_GROUP_BY_H
#define REPORT_GROUP_BY_H

#include "report/context/report_data.h"

/* What --by names. */
enum group_key {
	GROUP_NONE,
	GROUP_THREAD,	   /* that got the block, whichever frees it: print_threads.h */
	GROUP_THREAD_NAME, /* the same of all that have a name */
	GROUP_MODULE,	   /* of the function that allocated */
	GROUP_SIZE,	   /* by powers of two */
	GROUP_FUNCTION,	   /* that allocated */
	GROUP_FILE,	   /* source file of it */
	GROUP_AGE,	   /* at the end */
	GROUP_PROCESS, /* whose they are; of the kernel's blocks, on whose behalf: "interrupts" for
			  none */
	/* of the kernel's blocks: */
	GROUP_CGROUP,
	GROUP_CACHE, /* of slabs, or pages of an order */
	GROUP_ORDER, /* of pages */
	GROUP_FLAGS, /* of the allocation */
};

/* Is it about threads, and needs struct report_data's accounts? */
static inline bool group_is_threads(enum group_key key)
{
	return key == GROUP_THREAD || key == GROUP_THREAD_NAME;
}

/*
 * Print to @out a line for each group: of sizes and ages in their order, else the one with the most
 * bytes first.  For module, function and file there are two amounts: of stacks whose innermost
 * frame is of the group, and of those that have any such frame.
 * Returns 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
int print_groups(FILE *out, const struct report_data *export, enum group_key key,
		 const struct table_opts *opts);

#endif
