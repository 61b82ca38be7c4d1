/* launch_preloaded.c - whether a command can take the library, and its start with it */
#include "record/preload/launch_preloaded.h"
#include "record/preload/backend.h"
#include "record/ptrace/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/rlimits.h"
#include "record/libpreload/ring.h"
#include "record/preload/lost/hindrance.h"

#define HANDED_DOWN 100 /* descriptors above this are hardly ever used by a program */

/* Find the file @name beside this program, or where it is installed.  On failure one sentence was
 * logged.  Returns 0 or -errno. */
static int find_file(const char *name, char *path, size_t size)
{
	static const char *const places[] = {"", "../lib/mleak/", "../lib64/mleak/",
					     "../lib/x86_64-linux-gnu/mleak/"};
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[len < 0 ? 0 : len] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, size, "%s%s%s", exe, places[i], name);

		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return 0;
	}
	log_error("cannot find '%s', neither beside mleak nor in ../lib/mleak", name);
	return -ENOENT;
}

int preload_find_library(char *path, size_t size)
{
	int err = find_file(PRELOAD_LIBRARY, path, size);

	if (err || !strpbrk(path, " :"))
		return err;
	log_error("cannot preload '%s': the loader accepts no path with a space or colon", path);
	return -EINVAL;
}

bool preload_is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, PRELOAD_LIBRARY);
}

/* The file that execvp(3) will start, into @path.  False: there is none. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *dir = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size && !access(path, X_OK);
	for (dir = dir ? dir : "/bin:/usr/bin"; *dir; dir += *dir == ':') {
		size_t len = strcspn(dir, ":");
		struct stat st;

		if (snprintf(path, size, "%.*s%s%s", (int)len, dir, len ? "/" : "./", name) <
			    (int)size &&
		    !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return true;
		dir += len;
	}
	return false;
}

/* Does the kernel give the program at @path rights that its user has not? */
static bool gains_rights(const char *path, const struct stat *st)
{
	if (geteuid() == 0)
		return false;
	return (st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
	       (st->st_mode & S_ISGID && st->st_gid != getegid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Why the library will not come up in the program at @path; NULL: it should. */
static const char *hindrance(const char *path)
{
	const char *why = NULL;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	/* What cannot be read is for execve(2) to judge. */
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st))
		why = hindrance_of(fd, gains_rights(path, &st));
	close(fd);
	return why;
}

/* What names the memory to the library, into @text.  Returns whether it could be handed down. */
static bool tell(const struct preload_child *child, char *text, size_t size)
{
	const struct preload_header *h = child->header;
	int fd;

	if (h->follow) {
		snprintf(text, size, "@%u,%u,%" PRIx64 ",a", h->recorder_pid, h->recorder_fd,
			 h->nonce);
		return true;
	}
	fd = fcntl(child->memory, F_DUPFD, HANDED_DOWN);
	if (fd < 0)
		fd = dup(child->memory);
	snprintf(text, size, "%d,%" PRIx64, fd, h->nonce);
	return fd >= 0;
}

/* In the child: become the command; if that fails, tell the parent why through @report. */
static void become(const struct preload_child *child, char **argv, int report)
{
	const char *others = getenv("LD_PRELOAD");
	char value[2 * PATH_MAX], memory[64];

	child->header->processes[0].pid = (uint32_t)getpid();
	snprintf(value, sizeof(value), "%s%s%s", child->library, others && *others ? ":" : "",
		 others ? others : "");
	errno = 0;
	if (tell(child, memory, sizeof(memory)) && !setenv("LD_PRELOAD", value, 1) &&
	    !setenv(PRELOAD_ENV, memory, 1))
		execvp(argv[0], argv);
	launch_not_begun(report);
}

int preload_start(const struct preload_child *child, char **argv, pid_t *pid)
{
	char path[PATH_MAX];
	const char *why = find_program(argv[0], path, sizeof(path)) ? hindrance(path) : NULL;
	void (*on_child)(int);
	int report[2], err;

	if (why) {
		log_error("cannot record '%s' with --backend preload: %s", argv[0], why);
		return EXIT_RECORD_FAILED;
	}
	if (pipe2(report, O_CLOEXEC)) {
		log_error("cannot start '%s': %s", argv[0], strerror(errno));
		return EXIT_RECORD_FAILED;
	}
	on_child = signal(SIGCHLD, SIG_DFL); /* if ignored, nothing could be waited for */
	*pid = fork();
	if (*pid == 0) {
		signal(SIGCHLD, on_child);
		rlimits_restore();
		become(child, argv, report[1]);
	}
	err = *pid < 0 ? errno : 0;
	close(report[1]);
	/* Either exec closes the pipe, or the reason of its failure comes through it. */
	if (!err && read(report[0], &err, sizeof(err)) == (ssize_t)sizeof(err))
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	close(report[0]);
	return err ? launch_explain(argv[0], err) : 0;
}

#ifndef WRAPPED
#define WRAPPED "malloc free" /* build.mk of libpreload gives all */
#endif

int print_wrap_flags(void)
{
	char path[PATH_MAX];

	if (find_file("libmleak-wrap.a", path, sizeof(path)))
		return EXIT_FAILED;
	if (strpbrk(path, " \t\n")) {
		log_error("the path '%s' has a space, at which a shell would split it", path);
		return EXIT_FAILED;
	}
	for (const char *name = WRAPPED; *name; name += strspn(name, " ")) {
		int len = (int)strcspn(name, " ");

		printf("-Wl,--wrap=%.*s ", len, name);
		name += len;
	}
	/* Else a program that calls none of them, but the C library does, would not get them. */
	printf("-Wl,-u,__wrap_malloc %s\n", path);
	return EXIT_OK;
}
