/* memory.c - see memory.h */
#include "report/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/resource.h>

#include "mleak.h"

static uint64_t allowed; /* bytes; 0: no limit */

/* The number behind @format in a line of the file @path, or @without. */
static uint64_t number_in(const char *path, const char *format, uint64_t without)
{
	FILE *in = fopen(path, "re");
	char line[256];
	uint64_t value;
	bool found = false;

	while (in && !found && fgets(line, sizeof(line), in))
		found = sscanf(line, format, &value) == 1;
	if (in)
		fclose(in);
	return found ? value : without;
}

static uint64_t half_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
	/* a container sees its own group there */
	uint64_t group = number_in("/sys/fs/cgroup/memory.max", "%" SCNu64, UINT64_MAX);

	return (group < all ? group : all) / 2;
}

void memory_limit(uint64_t bytes)
{
	uint64_t in_use = 1024 * number_in("/proc/self/status", "VmData: %" SCNu64, 0), most;
	struct rlimit limit;

	allowed = 0;
	if (!bytes)
		bytes = half_of_machine();
	if (getrlimit(RLIMIT_DATA, &limit) || __builtin_add_overflow(in_use, bytes, &most) ||
	    most >= limit.rlim_cur)
		return;
	limit.rlim_cur = most;
	if (!setrlimit(RLIMIT_DATA, &limit))
		allowed = bytes;
}

uint64_t memory_allowed(void)
{
	return allowed;
}

void memory_explain(const char *path)
{
	struct rlimit space;

	/* that of the address space may be the one that was reached */
	if (allowed && !getrlimit(RLIMIT_AS, &space) && space.rlim_cur == RLIM_INFINITY)
		log_error("the report of '%s' needs more memory than the %" PRIu64
			  " MiB allowed: allow more with --max-memory, or leave out a part of the "
			  "recording with --at",
			  path, allowed >> 20);
	else
		log_error("the report of '%s' needs more memory than there is: cannot allocate "
			  "memory",
			  path);
}
