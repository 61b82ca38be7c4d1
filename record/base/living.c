/* living.c - see living.h */
#include "record/base/living.h"

#include <stdio.h>
#include <string.h>

#include "record/base/proc.h"

#define PF_EXITING 0x4 /* of the kernel's flags: it has begun to end */

/* Its state and flags, as proc(5) has them.  False: it is not there. */
static bool read_state(pid_t tid, char *state, unsigned int *flags)
{
	char stat[512];
	const char *behind_name;

	proc_read(stat, sizeof(stat), "/proc/%d/stat", (int)tid);
	behind_name = strrchr(stat, ')');
	return behind_name &&
	       sscanf(behind_name + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

bool living_is(pid_t tid)
{
	unsigned int flags;
	char state;

	return read_state(tid, &state, &flags) && !strchr("ZX", state);
}

bool living_goes_on(pid_t tid)
{
	unsigned int flags;
	char state;

	return read_state(tid, &state, &flags) && !(flags & PF_EXITING);
}

pid_t living_other(pid_t pid, pid_t but)
{
	DIR *dir = proc_threads(pid);
	pid_t tid = 0;

	while (dir && (tid = proc_next_thread(dir)) != 0 && (tid == but || !living_is(tid)))
		;
	if (dir)
		closedir(dir);
	return tid;
}
