/* rlimits.c - see rlimits.h */
#include "record/base/rlimits.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mleak.h"

/* Open at once for one process: programs, maps, probes, the helper's; besides one for each CPU. */
#define FILES_NEEDED 64

/* What a child gets back; of the process, as the limits are. */
static struct {
	bool files, sizes; /* changed */
	struct rlimit descriptors;
	struct sigaction too_large;
} before;

void rlimits_raise(void)
{
	struct sigaction ignored = {.sa_handler = SIG_IGN};
	struct rlimit most;

	if (!getrlimit(RLIMIT_NOFILE, &before.descriptors)) {
		most = before.descriptors;
		most.rlim_cur = most.rlim_max;
		before.files = !setrlimit(RLIMIT_NOFILE, &most);
	}
	before.sizes = !sigaction(SIGXFSZ, &ignored, &before.too_large);
}

void rlimits_restore(void)
{
	if (before.files)
		setrlimit(RLIMIT_NOFILE, &before.descriptors);
	if (before.sizes)
		sigaction(SIGXFSZ, &before.too_large, NULL);
}

int rlimits_check_files(void)
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

const char *rlimits_of_memory(void)
{
	static char text[128];
	struct rlimit limit;

	*text = '\0';
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(text, sizeof(text),
			 "; it may take no more than %llu MiB of addresses: raise the limit "
			 "(ulimit -v)",
			 (unsigned long long)limit.rlim_cur >> 20);
	return text;
}

int rlimits_check_size(uint64_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes ? -EFBIG : 0;
}
