/* kernel_options.h - the options of mleak record --kernel */
#ifndef RECORD_KERNEL_OPTIONS_H
#define RECORD_KERNEL_OPTIONS_H

#include "cmdline/options.h"
#include "record/kernel_record.h"

/* Keys of the rows of these options. */
enum kernel_key {
	KERNEL_EVENTS = 768,
	KERNEL_PERCPU,
	KERNEL_USER_STACKS,
	KERNEL_OLDER,
	KERNEL_COMM,
	KERNEL_CGROUP,
	KERNEL_CACHE,
	KERNEL_MAX_BLOCKS,
};

#define KERNEL_USUAL_BLOCKS (1u << 19)

/* Apply @option, one of these, with its value @text.  Returns 0, or -EINVAL after one sentence was
 * logged. */
int kernel_option(struct kernel_opts *o, const struct option_info *option, const char *text);

#endif
