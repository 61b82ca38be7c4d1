/* exec.c - the calls by which a program begins: with the environment that exec_env.h makes; by
 * syscall(3); and by what the C library begins with its own environ, which may have been emptied
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/preload.h"
#include "record/libpreload/process/exec_env.h"

/* The exec failed. */
static int stay(struct scratch *s)
{
	int saved_errno = errno;

	if (s) {
		exec_env_back(s);
		exec_env_drop(s);
	}
	errno = saved_errno;
	return -1;
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	const struct begun_program program = {.path = path, .dir = AT_FDCWD};
	struct scratch *s = preload_ready() ? carry(env, &program, false) : NULL;

	preload_real.execve(path, argv, exec_env_of(s, env));
	return stay(s);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	const struct begun_program program = {.path = file, .dir = AT_FDCWD, .search = true};
	struct scratch *s = preload_ready() ? carry(env, &program, false) : NULL;

	preload_real.execvpe(file, argv, exec_env_of(s, env));
	return stay(s);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	const struct begun_program program = {.path = path, .dir = dir};
	struct scratch *s = preload_ready() ? carry(env, &program, false) : NULL;

	errno = ENOSYS; /* an old C library has none */
	if (preload_real.execveat)
		preload_real.execveat(dir, path, argv, exec_env_of(s, env), flags);
	return stay(s);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	const struct begun_program program = {.path = "", .dir = fd};
	struct scratch *s = preload_ready() ? carry(env, &program, false) : NULL;

	preload_real.fexecve(fd, argv, exec_env_of(s, env));
	return stay(s);
}

enum list_call { LIST_PATH, LIST_FILE, LIST_ENV };

/* The arguments are put onto the stack, as the C library does it. */
static int exec_list(enum list_call call, const char *path, const char *first, va_list *args)
{
	char *const *env = environ;
	va_list again;
	size_t nr = 1;

	va_copy(again, *args);
	for (const char *arg = first; arg; nr++)
		arg = va_arg(again, char *);
	va_end(again);

	char *argv[nr];

	argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i < nr; i++)
		argv[i] = va_arg(*args, char *);
	if (call == LIST_ENV)
		env = va_arg(*args, char *const *);
	return call == LIST_FILE ? execvpe(path, argv, env) : execve(path, argv, env);
}

#define LIST(name, call)                                        \
	EXPORT int name(const char *path, const char *arg, ...) \
	{                                                       \
		va_list args;                                   \
                                                                \
		va_start(args, arg);                            \
		exec_list(call, path, arg, &args);              \
		va_end(args);                                   \
		return -1;                                      \
	}

LIST(execl, LIST_PATH)
LIST(execlp, LIST_FILE)
LIST(execle, LIST_ENV)

/* Was there a child, though what it was to run may have failed to begin with @err? */
static bool child_began(int err)
{
	return err != EAGAIN && err != ENOMEM;
}

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const *, char *const *);

/* What posix_spawn() and posix_spawnp() are called with, but the environment. */
#define SPAWN(name, along_path)                                                                  \
	EXPORT int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, \
			const posix_spawnattr_t *attr, char *const argv[], char *const env[])    \
	{                                                                                        \
		const struct begun_program program = {                                           \
			.path = path, .dir = AT_FDCWD, .search = along_path};                    \
		struct scratch *s = preload_ready() ? carry(env, &program, true) : NULL;         \
		spawn_function *real = (spawn_function *)preload_real.name;                      \
		int err = real(pid, path, actions, attr, argv, exec_env_of(s, env));             \
                                                                                                 \
		if (child_began(err))                                                            \
			preload_count_children(1);                                               \
		if (s && err)                                                                    \
			exec_env_back(s);                                                        \
		if (s)                                                                           \
			exec_env_drop(s);                                                        \
		return err;                                                                      \
	}

SPAWN(posix_spawn, false)
SPAWN(posix_spawnp, true)

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
	int saved_errno = errno, status;

	if (!command)
		return preload_real.system(command);
	preload_fill_environ();
	/* It may not come back before the recording is over. */
	preload_count_children(1);
	/* It tells whether a child began: if none did, glibc has it that a shell ended with 127. */
	errno = 0;
	status = preload_real.system(command);
	if ((status == -1 || status == 127 << 8) && !child_began(errno))
		preload_count_children(-1);
	if (!errno)
		errno = saved_errno;
	return status;
}

EXPORT FILE *popen(const char *command, const char *type)
{
	FILE *stream;

	preload_fill_environ();
	stream = preload_real.popen(command, type);
	if (stream)
		preload_count_children(1);
	return stream;
}
