/* kernel_options.c - see kernel_options.h */
#include "record/kernel_options.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

/* The id of the cgroup whose folder is @text: its inode in the unified hierarchy. */
static int option_cgroup(const struct option_info *option, const char *text, uint64_t *id)
{
	struct statfs fs;
	struct stat st;

	if (statfs(text, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC || stat(text, &st) ||
	    !S_ISDIR(st.st_mode))
		return option_refuse(option, "the folder of a cgroup (version 2)", text);
	*id = st.st_ino;
	return 0;
}

static int option_name(const struct option_info *option, const char *text, size_t most,
		       const char *wanted, const char **name)
{
	if (!text[0] || strlen(text) > most)
		return option_refuse(option, wanted, text);
	*name = text;
	return 0;
}

int kernel_option(struct kernel_opts *o, const struct option_info *option, const char *text)
{
	uint64_t blocks;
	int err;

	switch (option->key) {
	case KERNEL_EVENTS:
		o->probes.all_events = true;
		return 0;
	case KERNEL_PERCPU:
		o->probes.percpu = true;
		return 0;
	case KERNEL_USER_STACKS:
		o->probes.user_stacks = true;
		return 0;
	case KERNEL_OLDER:
		return option_time(option, text, 0, &o->older_ns);
	case KERNEL_COMM:
		return option_name(option, text, KMEM_COMM - 1,
				   "a thread's name of at most 15 bytes", &o->probes.comm);
	case KERNEL_CGROUP:
		o->cgroup = text;
		return option_cgroup(option, text, &o->probes.cgroup);
	case KERNEL_CACHE:
		return option_name(option, text, 63, "a name as in /proc/slabinfo", &o->cache);
	default:
		err = option_number(option, text, KMEM_BLOCKS_LEAST, KMEM_BLOCKS_MOST,
				    "a number from 4096 to 8388608", &blocks);
		if (!err)
			o->probes.max_blocks = (uint32_t)blocks;
		return err;
	}
}
