/* roots.c - see roots.h */
#include "record/reach/roots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "array.h"

#define EPOLL "anon_inode:[eventpoll]"

int roots_add(struct reach_roots *roots, enum mlk_root_kind kind, uint32_t number, uint64_t value)
{
	if (!value || roots->nr == ROOTS_MOST)
		return 0;
	if (grow_array(&roots->v, roots->nr, &roots->room, sizeof(*roots->v)))
		return -ENOMEM;
	roots->v[roots->nr++] = (struct mlk_root){(uint8_t)kind, number, value};
	return 0;
}

int roots_parse_epoll(struct reach_roots *roots, uint32_t number, const char *line)
{
	const char *at = strncmp(line, "tfd:", 4) ? NULL : strstr(line, "data:");
	uint64_t value;

	if (!at || sscanf(at + 5, "%" SCNx64, &value) != 1)
		return 0;
	return roots_add(roots, MLK_ROOT_EPOLL, number, value);
}

int roots_parse_timer(struct reach_roots *roots, uint32_t *number, const char *line)
{
	uint64_t value;

	if (sscanf(line, "ID: %" SCNu32, number) == 1 ||
	    sscanf(line, "signal: %*d/%" SCNx64, &value) != 1)
		return 0;
	return roots_add(roots, MLK_ROOT_TIMER, *number, value);
}

/* Give each line of the file @path to the parser of @kind.  What is not there has none: it may have
 * been closed. */
static int read_lines(struct reach_roots *roots, enum mlk_root_kind kind, uint32_t number,
		      const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512];
	int err = !file && (errno == EACCES || errno == EPERM) ? -errno : 0;

	while (file && !err && fgets(line, sizeof(line), file))
		err = kind == MLK_ROOT_EPOLL ? roots_parse_epoll(roots, number, line)
					     : roots_parse_timer(roots, &number, line);
	if (file)
		fclose(file);
	return err;
}

static int read_epoll(struct reach_roots *roots, const struct target *t, const char *fd)
{
	char path[320], to[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)t->task, fd);
	len = readlink(path, to, sizeof(to) - 1);
	if (len < 0)
		return errno == EACCES || errno == EPERM ? -errno : 0;
	to[len] = '\0';
	if (strcmp(to, EPOLL) != 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)t->task, fd);
	return read_lines(roots, MLK_ROOT_EPOLL, (uint32_t)strtoul(fd, NULL, 10), path);
}

static int read_ours(const struct target *t, struct reach_roots *roots)
{
	struct dirent *entry;
	char path[64];
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)t->task);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)) != NULL)
		err = read_epoll(roots, t, entry->d_name);
	closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/timers", (int)t->task);
	return err ? err : read_lines(roots, MLK_ROOT_TIMER, 0, path);
}

int roots_to_file(const struct target *t)
{
	struct reach_roots roots = {0};
	int err = read_ours(t, &roots), fd = -1;
	size_t bytes = roots.nr * sizeof(*roots.v);

	if (!err) {
		fd = memfd_create("mleak-roots", MFD_CLOEXEC);
		err = fd < 0 ? -errno : 0;
	}
	if (!err && bytes && write(fd, roots.v, bytes) != (ssize_t)bytes)
		err = -ENOMEM;
	if (err && fd >= 0)
		close(fd);
	reach_roots_release(&roots);
	return err ? err : fd;
}

/* Those that the helper has found. */
static int read_file(int fd, struct reach_roots *roots)
{
	struct mlk_root root;
	off_t at = 0;
	int err = 0;

	while (!err && pread(fd, &root, sizeof(root), at) == (ssize_t)sizeof(root)) {
		err = roots_add(roots, (enum mlk_root_kind)root.kind, root.number, root.value);
		at += (off_t)sizeof(root);
	}
	close(fd);
	return err;
}

int roots_read(const struct target *t, struct reach_roots *roots)
{
	const struct helper_task of = {.pid = t->pid, .task = t->task};
	int err = read_ours(t, roots), fd;

	if ((err != -EACCES && err != -EPERM) || !t->helper)
		return err;
	fd = helper_roots(t->helper, &of);
	return fd < 0 ? fd : read_file(fd, roots);
}

void reach_roots_release(struct reach_roots *roots)
{
	free(roots->v);
	*roots = (struct reach_roots){0};
}
