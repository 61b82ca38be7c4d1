/* exec.c - the process goes on as another program, which is to be recorded too
 *
 * At its start the library took itself out of the environment, so that nothing the target starts
 * carries it.  Here it is put back, for this process alone: not for a child of fork or vfork.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/preload/guard.h"

#define EXPORT	    __attribute__((visibility("default")))
#define HANDED_DOWN 100 /* descriptors above this are hardly ever used by a program */

/* An environment with what the library needs; mapped, for there may be a lock on malloc. */
struct scratch {
	size_t bytes;
	int fd; /* of the shared memory; -1: the environment is as it was */
	char *const *env;
	char memory[96];
	char preload[]; /* "LD_PRELOAD=..." and then the pointers */
};

static char *put(char *to, const char *text)
{
	size_t len = strlen(text);

	memcpy(to, text, len + 1);
	return to + len;
}

static char *put_number(char *to, uint64_t value, unsigned int base)
{
	char digits[24];
	unsigned int n = 0;

	do
		digits[n++] = "0123456789abcdef"[value % base];
	while (value /= base);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
	return to;
}

/* The shared memory again, by the recorder's descriptor of it. */
static int reopen(const struct preload_header *h)
{
	char path[64], *end;
	int low, fd;

	end = put_number(put(path, "/proc/"), h->recorder_pid, 10);
	put_number(put(end, "/fd/"), h->recorder_fd, 10);
	low = open(path, O_RDWR | O_CLOEXEC);
	if (low < 0)
		return -1;
	fd = fcntl(low, F_DUPFD, HANDED_DOWN);
	if (fd < 0)
		fd = dup(low);
	close(low);
	return fd;
}

static bool is_preload(const char *entry)
{
	return !strncmp(entry, "LD_PRELOAD=", 11);
}

/* @env with LD_PRELOAD and our variable.  NULL: it cannot be, or is not to be. */
static struct scratch *carry(char *const *env)
{
	struct preload_header *h = preload_is_parent() ? preload_shared() : NULL;
	const char *others = NULL;
	struct scratch *s;
	size_t nr = 0, text, bytes;
	char **to, *end;

	if (!h || preload_is_over(h))
		return NULL;
	guard_check_all(OVERRUN_AT_EXEC);
	for (; env && env[nr]; nr++)
		if (is_preload(env[nr]) && env[nr][11])
			others = env[nr] + 11;
	text = (strlen(preload_library()) + (others ? strlen(others) : 0) + 24) & ~(size_t)7;
	bytes = sizeof(*s) + text + (nr + 3) * sizeof(char *);
	s = preload_real.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	if (s == MAP_FAILED)
		return NULL;
	s->bytes = bytes;
	s->fd = reopen(h);
	if (s->fd < 0) {
		preload_real.munmap(s, bytes);
		return NULL;
	}
	end = put(put(s->preload, "LD_PRELOAD="), preload_library());
	if (others)
		put(put(end, ":"), others);
	end = put_number(put(s->memory, PRELOAD_ENV "="), (uint64_t)s->fd, 10);
	put_number(put(end, ","), h->nonce, 16);
	to = (char **)(s->preload + text);
	s->env = to;
	*to++ = s->preload;
	*to++ = s->memory;
	for (size_t i = 0; i < nr; i++)
		if (!is_preload(env[i]))
			*to++ = env[i];
	__atomic_fetch_add(&h->execs, 1, __ATOMIC_RELEASE);
	return s;
}

/* The exec failed: all goes on as before. */
static int stay(struct scratch *s)
{
	int saved_errno = errno;

	if (s) {
		__atomic_fetch_sub(&preload_shared()->execs, 1, __ATOMIC_RELEASE);
		close(s->fd);
		preload_real.munmap(s, s->bytes);
	}
	errno = saved_errno;
	return -1;
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	struct scratch *s = preload_ready() ? carry(env) : NULL;

	preload_real.execve(path, argv, s ? s->env : env);
	return stay(s);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	struct scratch *s = preload_ready() ? carry(env) : NULL;

	preload_real.execvpe(file, argv, s ? s->env : env);
	return stay(s);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	struct scratch *s = preload_ready() ? carry(env) : NULL;

	preload_real.fexecve(fd, argv, s ? s->env : env);
	return stay(s);
}

/* Arguments from @first up to NULL into an array, for execl and its like.  NULL: no memory. */
static char **gather(const char *first, va_list *args, size_t *bytes)
{
	char **argv, *arg = (char *)(uintptr_t)first;
	va_list again;
	size_t nr = 1;

	va_copy(again, *args);
	while (va_arg(again, char *))
		nr++;
	va_end(again);
	*bytes = (nr + 1) * sizeof(char *);
	argv = preload_real.mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	if (argv == MAP_FAILED)
		return NULL;
	for (nr = 0; (argv[nr] = arg) != NULL; nr++)
		arg = va_arg(*args, char *);
	return argv;
}

enum list_call { LIST_PATH, LIST_FILE, LIST_ENV };

static int exec_list(enum list_call call, const char *path, const char *first, va_list *args)
{
	char *const *env = environ;
	char **argv;
	size_t bytes;
	int saved_errno;

	if (!preload_ready())
		return errno = ENOMEM, -1;
	argv = gather(first, args, &bytes);
	if (!argv)
		return errno = ENOMEM, -1;
	if (call == LIST_ENV)
		env = va_arg(*args, char *const *);
	if (call == LIST_FILE)
		execvpe(path, argv, env);
	else
		execve(path, argv, env);
	saved_errno = errno;
	preload_real.munmap(argv, bytes);
	errno = saved_errno;
	return -1;
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
