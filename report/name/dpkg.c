/* dpkg.c - see dpkg.h */
#include "report/name/dpkg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/base/array.h"

/* Where /lib is a link to /usr/lib, packages may still name /lib. */
#define MERGED "/usr"

#define LIST_END  ".list"
#define LIST_MOST ((off_t)1 << 26) /* bytes of a list that is read */

struct dpkg {
	const char *lists;
	const char *const *paths;
	size_t nr;
	char **names; /* of each path; NULL: none was found yet */
	int err;      /* 0 or -ENOMEM */
	bool by_thread;
	pthread_t thread;
	atomic_bool unwanted;
};

/* A list that was read. */
struct list {
	char *text;
	size_t len, room;
};

static const char *unmerged(const char *path)
{
	size_t len = strlen(MERGED);

	return !strncmp(path, MERGED "/", len + 1) ? path + len : path;
}

/* Are the @len characters at @line @path, as it is or as it may have been packed? */
static bool line_is(const char *line, size_t len, const char *path)
{
	const char *packed = unmerged(path);
	size_t path_len = strlen(path);

	if (len == path_len && !memcmp(line, path, len))
		return true;
	return len == path_len - (size_t)(packed - path) && !memcmp(line, packed, len);
}

/* File @i is of the package whose list has the name @file.  Of several the first one counts: which
 * is read first is chance. */
static int note_package(struct dpkg *packages, size_t i, const char *file)
{
	char *name = strndup(file, strcspn(file, ":")), *end;

	if (!name)
		return -ENOMEM;
	end = strstr(name, LIST_END);
	/* without an architecture */
	if (end && !end[strlen(LIST_END)])
		*end = '\0';
	if (packages->names[i] && strcmp(packages->names[i], name) <= 0) {
		free(name);
		return 0;
	}
	free(packages->names[i]);
	packages->names[i] = name;
	return 0;
}

/* Look for the files in the list of the name @file. */
static int search_list(struct dpkg *packages, const struct list *list, const char *file)
{
	const char *at = list->text, *end = at + list->len, *next;
	int err = 0;

	for (; at < end && !err; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (!next)
			next = end;
		for (size_t i = 0; i < packages->nr && !err; i++)
			if (line_is(at, (size_t)(next - at), packages->paths[i]))
				err = note_package(packages, i, file);
	}
	return err;
}

/* Have room for @len bytes.  Returns 0 or -ENOMEM. */
static int enlarge_list(struct list *list, size_t len)
{
	char *text = array_grow(list->text, &list->room, len, 1);

	if (!text)
		return -ENOMEM;
	list->text = text;
	return 0;
}

/* Read the list @file in folder @dir; one that cannot be read is empty.  Returns 0 or -ENOMEM. */
static int read_list(struct list *list, int dir, const char *file)
{
	int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	ssize_t len = 0;

	list->len = 0;
	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= LIST_MOST) {
		err = enlarge_list(list, (size_t)st.st_size);
		len = err ? 0 : read(fd, list->text, (size_t)st.st_size);
	}
	list->len = len > 0 ? (size_t)len : 0;
	close(fd);
	return err;
}

static bool is_list(const char *file)
{
	size_t len = strlen(file), end = strlen(LIST_END);

	return len > end && !strcmp(file + len - end, LIST_END);
}

static int search_lists(struct dpkg *packages, DIR *dir)
{
	struct list list = {0};
	struct dirent *entry;
	int err = 0;

	while (!err && !packages->unwanted && (entry = readdir(dir)) != NULL) {
		if (!is_list(entry->d_name))
			continue;
		err = read_list(&list, dirfd(dir), entry->d_name);
		if (!err)
			err = search_list(packages, &list, entry->d_name);
	}
	free(list.text);
	return err;
}

static void *find_packages(void *arg)
{
	struct dpkg *packages = arg;
	DIR *dir = opendir(packages->lists);

	if (!dir)
		return NULL;
	packages->err = search_lists(packages, dir);
	closedir(dir);
	return NULL;
}

int dpkg_ask(struct dpkg **out, const char *lists, const char *const *paths, size_t nr)
{
	struct dpkg *packages = *out = calloc(1, sizeof(*packages));

	if (!packages)
		return -ENOMEM;
	packages->lists = lists;
	packages->paths = paths;
	packages->nr = nr;
	packages->names = calloc(nr + 1, sizeof(*packages->names));
	if (!packages->names) {
		free(packages);
		*out = NULL;
		return -ENOMEM;
	}
	packages->by_thread =
		nr && !pthread_create(&packages->thread, NULL, find_packages, packages);
	return 0;
}

int dpkg_read(struct dpkg *packages, char **names)
{
	bool wanted = names != NULL;
	int err;

	if (!packages)
		return 0;
	packages->unwanted = !wanted;
	if (packages->by_thread)
		pthread_join(packages->thread, NULL);
	else if (packages->nr && wanted)
		find_packages(packages);
	err = wanted ? packages->err : 0;
	for (size_t i = 0; i < packages->nr; i++) {
		if (wanted)
			names[i] = err ? NULL : packages->names[i];
		if (!wanted || err)
			free(packages->names[i]);
	}
	free(packages->names);
	free(packages);
	return err;
}
