/* kernel.c - version numbers */
#include "record/kernel.h"

#include <stdio.h>
#include <sys/utsname.h>

bool kernel_release_at_least(const char *release, int major, int minor, int patch)
{
	int has[3] = {0}; /* what is missing, as in "6.9-rc1", counts as 0 */
	const int wants[3] = {major, minor, patch};

	sscanf(release, "%d.%d.%d", &has[0], &has[1], &has[2]);
	for (int i = 0; i < 3; i++)
		if (has[i] != wants[i])
			return has[i] > wants[i];
	return true;
}

static bool at_least(int major, int minor, int patch)
{
	struct utsname host;

	return !uname(&host) && kernel_release_at_least(host.release, major, minor, patch);
}

bool kernel_multi_filters_threads(void)
{
	return (at_least(6, 6, 0) && !at_least(6, 6, 35)) ||
	       (at_least(6, 7, 0) && !at_least(6, 9, 5));
}

bool kernel_shadow_stack_kills(void)
{
	return at_least(6, 6, 0) && !at_least(6, 11, 0);
}

bool kernel_seccomp_kills(void)
{
	return (at_least(6, 11, 0) && !at_least(6, 12, 14)) ||
	       (at_least(6, 13, 0) && !at_least(6, 13, 3));
}

bool kernel_maps_take_bpf(void)
{
	return !at_least(5, 19, 0);
}
