/* system_popen.c - other ways to begin a program than those of exec.c: by syscall(3), and by what
 * the C library begins with its own environ, which may have been emptied
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/preload.h"

#define EXPORT __attribute__((visibility("default")))

/* The half of syscall() for execve and execveat. */
long preload_exec_by_number(long number, long a, long b, long c, long d, long e)
{
	char *const *argv = (char *const *)(number == SYS_execve ? b : c);
	char *const *env = (char *const *)(number == SYS_execve ? c : d);

	if (number == SYS_execve)
		return execve((const char *)a, argv, env);
	return execveat((int)a, (const char *)b, argv, env, (int)e);
}

long preload_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

EXPORT int system(const char *command)
{
	if (command)
		preload_fill_environ();
	return preload_real.system(command);
}

EXPORT FILE *popen(const char *command, const char *type)
{
	preload_fill_environ();
	return preload_real.popen(command, type);
}
