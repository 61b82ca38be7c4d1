/* dpkg.c - see dpkg.h */
#include "report/name/dpkg.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where /lib is a link to /usr/lib, packages may still name /lib. */
#define MERGED "/usr"

struct dpkg {
	const char *const *paths;
	size_t nr;
	FILE *out; /* of dpkg; NULL: it could not be asked */
	pid_t pid;
};

static const char *unmerged(const char *path)
{
	size_t len = strlen(MERGED);

	return !strncmp(path, MERGED "/", len + 1) ? path + len : path;
}

/* `dpkg -S -- PATHS`, NULL behind it; each as it is and as it may have been packed.  NULL without
 * memory. */
static char **make_argv(const char *const *paths, size_t nr)
{
	static char *const command[] = {"dpkg", "-S", "--"};
	char **argv = calloc(2 * nr + 4, sizeof(*argv));

	if (!argv)
		return NULL;
	memcpy(argv, command, sizeof(command));
	for (size_t i = 0; i < nr; i++) {
		/* posix_spawn() changes nothing of them */
		argv[3 + 2 * i] = (char *)(uintptr_t)paths[i];
		argv[4 + 2 * i] = (char *)(uintptr_t)unmerged(paths[i]);
	}
	return argv;
}

/* Start @argv.  Returns what reads its output, or NULL. */
static FILE *start_dpkg(char *const *argv, pid_t *pid)
{
	static char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	posix_spawn_file_actions_t actions;
	FILE *out = NULL;
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	err = posix_spawn_file_actions_init(&actions);
	if (!err) {
		posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
		err = posix_spawn(pid, "/usr/bin/dpkg", &actions, NULL, argv, env);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(fds[1]);
	if (!err)
		out = fdopen(fds[0], "r");
	if (!out)
		close(fds[0]);
	if (!err && !out)
		waitpid(*pid, NULL, 0);
	return out;
}

/* A line of dpkg's is `PACKAGE[:ARCH][, ...]: PATH`; one about a diversion has a space in front of
 * its colon. */
static int take_line(const char *line, const char *const *paths, size_t nr, char **names)
{
	const char *path = strstr(line, ": /");
	size_t len = strcspn(line, ":, ");

	if (!path || !len || line[len] == ' ')
		return 0;
	path += 2;
	for (size_t i = 0; i < nr; i++) {
		if (names[i] ||
		    (strcmp(path, paths[i]) != 0 && strcmp(path, unmerged(paths[i])) != 0))
			continue;
		names[i] = strndup(line, len);
		if (!names[i])
			return -ENOMEM;
	}
	return 0;
}

int dpkg_ask(struct dpkg **out, const char *const *paths, size_t nr)
{
	struct dpkg *packages = calloc(1, sizeof(*packages));
	char **argv = make_argv(paths, nr);

	*out = packages;
	if (packages && argv) {
		packages->paths = paths;
		packages->nr = nr;
		packages->out = nr ? start_dpkg(argv, &packages->pid) : NULL;
	} else {
		free(packages);
		*out = NULL;
	}
	free(argv);
	return *out ? 0 : -ENOMEM;
}

/* Read the answer to its end, so that dpkg is not stopped by a closed pipe. */
static int read_answer(const struct dpkg *packages, char **names)
{
	char *line = NULL;
	size_t room = 0;
	int err = 0;

	while (getline(&line, &room, packages->out) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!err && names)
			err = take_line(line, packages->paths, packages->nr, names);
	}
	free(line);
	return err;
}

int dpkg_read(struct dpkg *packages, char **names)
{
	int err = 0;

	if (!packages)
		return 0;
	if (names)
		memset(names, 0, packages->nr * sizeof(*names));
	if (packages->out) {
		err = read_answer(packages, names);
		fclose(packages->out);
		waitpid(packages->pid, NULL, 0);
	}
	for (size_t i = 0; err && i < packages->nr; i++) {
		free(names[i]);
		names[i] = NULL;
	}
	free(packages);
	return err;
}
