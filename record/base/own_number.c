/* own_number.c - see own_number.h */
#include "record/base/own_number.h"

#include <stdlib.h>
#include <string.h>

#include "record/base/proc.h"

#define TEXT_SIZE 65536 /* all groups of a process are before the line */

pid_t own_number_of(pid_t pid, pid_t tid)
{
	char *text = malloc(TEXT_SIZE), *at = NULL, *end;
	pid_t own = 0;

	if (text && proc_read(text, TEXT_SIZE, "/proc/%d/task/%d/status", (int)pid, (int)tid))
		at = strstr(text, "\nNSpid:");
	end = at ? strchr(at + 1, '\n') : NULL;
	if (end) { /* the innermost is the last one */
		*end = '\0';
		at = strrchr(at, '\t');
		own = at ? (pid_t)strtol(at, NULL, 10) : 0;
	}
	free(text);
	return own > 0 ? own : tid;
}

pid_t own_number_find(pid_t pid, pid_t own)
{
	DIR *dir = proc_threads(pid);
	pid_t tid = 0;

	while (dir && (tid = proc_next_thread(dir)) > 0)
		if (own_number_of(pid, tid) == own)
			break;
	if (dir)
		closedir(dir);
	return tid;
}
