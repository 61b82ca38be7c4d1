/* kernel.c - version numbers */
#include "record/base/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

bool kernel_is_proven(const char *release)
{
	return kernel_release_at_least(release, 6, 1, 0);
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

bool kernel_has_multi(void)
{
	return at_least(6, 6, 0);
}

bool kernel_has_sessions(void)
{
	return at_least(6, 13, 0);
}

static bool is_between(const char *release, const int from[3], const int below[3])
{
	return kernel_release_at_least(release, from[0], from[1], from[2]) &&
	       !kernel_release_at_least(release, below[0], below[1], below[2]);
}

/* Has the line that begins with @name the word @word? */
static bool has_word(const char *status, const char *name, const char *word)
{
	const char *line = strstr(status, name);
	size_t len = strlen(word);

	if (!line)
		return false;
	for (line += strlen(name); *line && *line != '\n'; line++)
		if (!strncmp(line, word, len) && (line[-1] == ' ' || line[-1] == '\t') &&
		    strchr(" \n", line[len]))
			return true;
	return false;
}

enum kernel_risk kernel_risk_of(const char *status, const char *release)
{
	const char *seccomp = strstr(status, "\nSeccomp:");

	if (seccomp && strtol(seccomp + strlen("\nSeccomp:"), NULL, 10) &&
	    (is_between(release, (int[]){6, 11, 0}, (int[]){6, 12, 14}) ||
	     is_between(release, (int[]){6, 13, 0}, (int[]){6, 13, 3})))
		return KERNEL_RISK_SECCOMP;
	if (has_word(status, "\nx86_Thread_features:", "shstk") &&
	    is_between(release, (int[]){6, 6, 0}, (int[]){6, 11, 0}))
		return KERNEL_RISK_SHADOW_STACK;
	return KERNEL_NO_RISK;
}

bool kernel_finds_storage(void)
{
	return at_least(6, 2, 0);
}

bool kernel_maps_take_bpf(void)
{
	return !at_least(5, 19, 0);
}
