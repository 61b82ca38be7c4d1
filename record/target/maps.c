/* maps.c - /proc/PID/maps to a sorted table */
#include "record/target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "array.h"

void maps_clear(struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		free((char *)maps->v[i].path);
	maps->nr = 0;
}

void maps_release(struct maps *maps)
{
	maps_clear(maps);
	free(maps->v);
	memset(maps, 0, sizeof(*maps));
}

/* Insert a copy of @m at index @i.  Returns 0 or -ENOMEM. */
static int insert(struct maps *maps, size_t i, const struct mlk_mapping *m)
{
	char *path = grow_array(&maps->v, maps->nr, &maps->room, sizeof(*maps->v))
			     ? NULL
			     : strndup(m->path, MLK_MAX_STRING);

	if (!path)
		return -ENOMEM;
	memmove(maps->v + i + 1, maps->v + i, (maps->nr - i) * sizeof(*maps->v));
	maps->v[i] = *m;
	maps->v[i].path = path;
	maps->nr++;
	return 0;
}

static void remove_at(struct maps *maps, size_t i)
{
	free((char *)maps->v[i].path);
	memmove(maps->v + i, maps->v + i + 1, (maps->nr - i - 1) * sizeof(*maps->v));
	maps->nr--;
}

bool maps_same_file(const struct mlk_mapping *a, const struct mlk_mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

bool maps_have_file(const struct maps *maps, dev_t dev, ino_t inode)
{
	const struct mlk_mapping m = {
		.inode = inode, .dev_major = major(dev), .dev_minor = minor(dev)};

	return maps_have_file_of(maps, &m);
}

bool maps_have_file_of(const struct maps *maps, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps_same_file(&maps->v[i], m))
			return true;
	return false;
}

void maps_keep_code(struct maps *maps)
{
	size_t kept = 0;

	for (size_t i = 0; i < maps->nr; i++) {
		if (maps->v[i].perms & MLK_PERM_X)
			maps->v[kept++] = maps->v[i];
		else
			free((char *)maps->v[i].path);
	}
	maps->nr = kept;
}

/* First entry that ends behind @addr. */
static size_t first_behind(const struct maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void cut_front(struct mlk_mapping *m, uint64_t start)
{
	m->offset += start - m->start;
	m->start = start;
}

int maps_add(struct maps *maps, const struct mlk_mapping *m)
{
	size_t i = first_behind(maps, m->start);
	int err;

	if (i < maps->nr && maps->v[i].start < m->start) {
		if (maps->v[i].end > m->end) {
			struct mlk_mapping tail = maps->v[i];

			cut_front(&tail, m->end);
			err = insert(maps, i + 1, &tail);
			if (err)
				return err;
		}
		maps->v[i++].end = m->start;
	}
	while (i < maps->nr && maps->v[i].end <= m->end)
		remove_at(maps, i);
	if (i < maps->nr && maps->v[i].start < m->end)
		cut_front(&maps->v[i], m->end);
	return insert(maps, i, m);
}

bool maps_overlaps(const struct maps *maps, const struct mlk_mapping *m)
{
	size_t i = first_behind(maps, m->start);
	const struct mlk_mapping *old = i < maps->nr ? &maps->v[i] : NULL;

	if (!old || old->start >= m->end || !(old->perms & MLK_PERM_X))
		return false;
	return old->start != m->start || old->end != m->end || old->inode != m->inode ||
	       old->offset != m->offset || strcmp(old->path, m->path) != 0;
}

/* Is @m memory that has no name, or one that the process has given it, and executable? */
static bool is_generated(const struct mlk_mapping *m)
{
	return m->perms & MLK_PERM_X && !m->inode &&
	       (!*m->path || !strncmp(m->path, "[anon", 5) || !strcmp(m->path, "[heap]"));
}

/* Would maps_add() of @m add code, and cut away none but generated code? */
static bool is_new_code(const struct maps *maps, const struct mlk_mapping *m)
{
	for (size_t i = first_behind(maps, m->start); i < maps->nr; i++) {
		const struct mlk_mapping *known = &maps->v[i];

		if (known->start >= m->end)
			break;
		if (!is_generated(known) || (known->start <= m->start && known->end >= m->end))
			return false;
	}
	return true;
}

int maps_add_generated(struct maps *maps, const struct maps *now)
{
	int added = 0;

	for (size_t i = 0; i < now->nr; i++) {
		int err;

		if (!is_generated(&now->v[i]) || !is_new_code(maps, &now->v[i]))
			continue;
		err = maps_add(maps, &now->v[i]);
		if (err)
			return err;
		added++;
	}
	return added;
}

const struct mlk_mapping *maps_find(const struct maps *maps, uint64_t addr)
{
	size_t i = first_behind(maps, addr);

	return i < maps->nr && maps->v[i].start <= addr ? &maps->v[i] : NULL;
}

/* One line; false when it is not of the known form. */
static bool parse_line(const char *line, struct mlk_mapping *m)
{
	char perms[5];
	int path = 0;

	memset(m, 0, sizeof(*m));
	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4c %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &m->start, &m->end, perms, &m->offset, &m->dev_major, &m->dev_minor, &m->inode,
		   &path) < 7 ||
	    m->start >= m->end)
		return false;
	m->perms = (perms[0] == 'r' ? MLK_PERM_R : 0) | (perms[1] == 'w' ? MLK_PERM_W : 0) |
		   (perms[2] == 'x' ? MLK_PERM_X : 0) | (perms[3] == 's' ? MLK_PERM_SHARED : 0);
	m->path = line + path;
	return true;
}

/* In place of a newline in a path the kernel prints \012, which a file may have been named as well:
 * that there is such a file tells. */
static void restore_newlines(struct mlk_mapping *m)
{
	char *path = strstr(m->path, "\\012") ? strdup(m->path) : NULL, *at = path;
	struct stat st;

	while (at && (at = strstr(at, "\\012")) != NULL) {
		*at++ = '\n';
		memmove(at, at + 3, strlen(at + 3) + 1);
	}
	/* the path lies in the text that is parsed, and becomes no longer */
	if (path && !stat(path, &st) && st.st_ino == m->inode)
		memcpy((char *)m->path, path, strlen(path) + 1);
	free(path);
}

int maps_parse(struct maps *maps, char *text)
{
	struct mlk_mapping m;
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n")) != NULL) {
		/* The kernel's lines ascend; one that does not was not from there. */
		if (!parse_line(line, &m) || (maps->nr && m.start < maps->v[maps->nr - 1].end))
			continue;
		restore_newlines(&m);
		if (insert(maps, maps->nr, &m))
			return -ENOMEM;
	}
	return 0;
}

/* The whole of a file of unknown length, NUL-terminated. */
static char *read_all(int fd, int *err)
{
	size_t len = 0, room = 65536;
	char *text = malloc(room), *grown;

	while (text) {
		ssize_t n = read(fd, text + len, room - len - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*err = -errno;
			free(text);
			return NULL;
		}
		len += (size_t)n;
		text[len] = '\0';
		if (n == 0)
			return text;
		if (room - len > 4096)
			continue;
		room *= 2;
		grown = realloc(text, room);
		if (!grown)
			free(text);
		text = grown;
	}
	*err = -ENOMEM;
	return NULL;
}

int maps_read(struct maps *maps, pid_t pid)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = maps_read_fd(maps, fd);
	close(fd);
	return err;
}

int maps_read_fd(struct maps *maps, int fd)
{
	struct maps fresh = {0};
	int err = 0;
	char *text = read_all(fd, &err);

	if (!text)
		return err;
	err = maps_parse(&fresh, text);
	free(text);
	/* An empty file: the process ended, or is a kernel thread. */
	if (!err && !fresh.nr)
		err = -ESRCH;
	if (err) {
		maps_release(&fresh);
		return err;
	}
	maps_release(maps);
	*maps = fresh;
	return 0;
}
