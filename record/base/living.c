/* living.c - see living.h */
#include "record/base/living.h"

#include <string.h>

#include "record/base/proc.h"

bool living_is(pid_t tid)
{
	char stat[512];
	const char *state;

	proc_read(stat, sizeof(stat), "/proc/%d/stat", (int)tid);
	state = strrchr(stat, ')');
	return state && state[1] == ' ' && !strchr("ZX", state[2]);
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
