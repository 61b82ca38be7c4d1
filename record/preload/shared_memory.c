/* shared_memory.c - see shared_memory.h */
#include "record/preload/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/rlimits.h"
#include "record/filter/filters.h"
#include "record/libpreload/account.h"

#define GOOD_PART 8 /* one in so many of a limit's addresses is told */

int shared_memory_make(const struct preload_opts *opts, int *memory_fd, size_t *bytes,
		       struct preload_header **out)
{
	int fd = opts->memory >= 0
			 ? opts->memory
			 : memfd_create(PRELOAD_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;

	*out = NULL;
	*memory_fd = fd;
	*bytes = preload_memory_bytes(&opts->rings, filters_by_thread(opts->filters));
	if (rlimits_check_size(*bytes))
		return -EFBIG;
	if (fd < 0 || ftruncate(fd, (off_t)*bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	*out = memory;
	return 0;
}

void shared_memory_explain(size_t bytes, int err)
{
	const char *limit = err == -EFBIG ? "the limit on the size of files (ulimit -f) is"
			    : err == -ENOMEM
				    ? "the limit on memory (ulimit -v), or what is free, is"
				    : NULL;

	if (limit)
		log_error("cannot make the %zu MiB of memory that are shared with the command: %s "
			  "below that; raise it, or give a smaller --ring-size",
			  (bytes + (1u << 20) - 1) >> 20, limit);
	else
		log_error("cannot make memory to share with the command: %s%s", strerror(-err),
			  err == -EMFILE ? " (ulimit -n)" : "");
}

void shared_memory_warn(size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    bytes < limit.rlim_cur / GOOD_PART)
		return;
	log_warn("of the %llu MiB of addresses that the command may take (ulimit -v), %zu are "
		 "taken by the memory that it shares with mleak; raise the limit, or give a "
		 "smaller --ring-size",
		 (unsigned long long)limit.rlim_cur >> 20, bytes >> 20);
}
