/* limits.c - see limits.h */
#include "record/limits.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mleak.h"

/* Open at once for one process: programs, maps, probes, the helper's; besides one for each CPU. */
#define FILES_NEEDED 64

void limits_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int limits_check_files(void)
{
	long needed = FILES_NEEDED + sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= (rlim_t)needed)
		return 0;
	log_error("cannot record: no more than %llu files may be open at once, and mleak needs "
		  "%ld; raise the limit (ulimit -Hn)",
		  (unsigned long long)limit.rlim_cur, needed);
	return -EMFILE;
}

int limits_check_size(uint64_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes ? -EFBIG : 0;
}
