/* packages.c - see packages.h
 *
 * The lists of dpkg's database are read here: `dpkg -S` gathers all files of all packages into
 * tables first, and would take as long as several million events.
 */
#include "report/packages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/array.h"

/* For each package a file PACKAGE[:ARCH].list, with a path on each line. */
#define FOLDER "/var/lib/dpkg/info"
#define END    ".list"

/* Where /lib is a link to /usr/lib, packages may still name /lib. */
#define MERGED "/usr"

/* What is looked for. */
struct wanted {
	const char *path;
	size_t len;
	size_t unmerged; /* of these bytes, how many a package may leave out at the beginning */
};

struct search {
	struct wanted *wanted;
	char **names; /* found */
	size_t nr;
	char *text; /* of one list */
	size_t room;
};

static bool is_wanted(const struct wanted *wanted, const char *line, size_t len)
{
	size_t merged = wanted->unmerged;

	return (len == wanted->len && !memcmp(line, wanted->path, len)) ||
	       (merged && len == wanted->len - merged && !memcmp(line, wanted->path + merged, len));
}

/* The package of the list @list has wanted file @i.  Of several it is the first in the order of
 * their names, whatever that of the folder is.  Returns 0 or -ENOMEM. */
static int take(struct search *search, size_t i, const char *list)
{
	const char *arch = strchr(list, ':');
	char *known = search->names[i];
	char *name = strndup(list, arch ? (size_t)(arch - list) : strlen(list) - strlen(END));

	if (!name)
		return -ENOMEM;
	if (known && strcmp(known, name) <= 0) {
		free(name);
		return 0;
	}
	free(known);
	search->names[i] = name;
	return 0;
}

/* Look through the @len bytes of the list @list, which are search->text. */
static int look_through(struct search *search, size_t len, const char *list)
{
	const char *line = search->text, *end = line + len, *stop;
	int err = 0;

	for (; line < end && !err; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			stop = end;
		for (size_t i = 0; i < search->nr && !err; i++)
			if (is_wanted(&search->wanted[i], line, (size_t)(stop - line)))
				err = take(search, i, list);
	}
	return err;
}

/* Read the list @name into search->text.  Returns its length, 0 if it cannot be read, or -ENOMEM.
 */
static ssize_t read_list(struct search *search, int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;
	ssize_t len = 0;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		text = array_grow(search->text, &search->room, (size_t)st.st_size, 1);
		len = text ? read(fd, text, (size_t)st.st_size) : -ENOMEM;
		if (text)
			search->text = text;
		if (text && len < 0)
			len = 0;
	}
	close(fd);
	return len;
}

static int search_folder(struct search *search, DIR *folder)
{
	const struct dirent *entry;
	ssize_t len = 0;
	int err = 0;

	while (!err && len >= 0 && (entry = readdir(folder))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, END) != 0)
			continue;
		len = read_list(search, dirfd(folder), entry->d_name);
		if (len > 0)
			err = look_through(search, (size_t)len, entry->d_name);
	}
	return len < 0 ? (int)len : err;
}

static void want(struct wanted *wanted, const char *path)
{
	size_t merged = strlen(MERGED);

	*wanted = (struct wanted){.path = path, .len = strlen(path)};
	if (!strncmp(path, MERGED "/", merged + 1))
		wanted->unmerged = merged;
}

int packages_find(const char *const *paths, size_t nr, char **names)
{
	struct search search = {.names = names, .nr = nr};
	DIR *folder = nr ? opendir(FOLDER) : NULL;
	int err = 0;

	memset(names, 0, nr * sizeof(*names));
	if (!folder)
		return 0;
	search.wanted = calloc(nr, sizeof(*search.wanted));
	if (search.wanted) {
		for (size_t i = 0; i < nr; i++)
			want(&search.wanted[i], paths[i]);
		err = search_folder(&search, folder);
	} else {
		err = -ENOMEM;
	}
	for (size_t i = 0; err && i < nr; i++) {
		free(names[i]);
		names[i] = NULL;
	}
	free(search.wanted);
	free(search.text);
	closedir(folder);
	return err;
}
