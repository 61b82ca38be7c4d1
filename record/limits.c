/* limits.c - see limits.h */
#include "record/limits.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

/* What a child gets back; of the process, as the limits are. */
static struct {
	bool files, sizes; /* changed */
	struct rlimit descriptors;
	struct sigaction too_large;
} before;

void limits_raise(void)
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

void limits_restore(void)
{
	if (before.files)
		setrlimit(RLIMIT_NOFILE, &before.descriptors);
	if (before.sizes)
		sigaction(SIGXFSZ, &before.too_large, NULL);
}
