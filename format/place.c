/* place.c - see place.h
 *
 * A process that replaces a file holds the file's lock meanwhile, and checks that the name is still
 * its own; and a name is taken only if no file has it.  So of two that want one name at the same
 * moment one is refused.
 */
#include "format/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "format/cache.h"
#include "format/chunk/chunk.h"
#include "format/trace.h"

#define TRIES 100 /* that others may take and give away the name meanwhile */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Lock the file that is open as @fd against others that would replace it.  A reader's lock does not
 * matter.  Returns 0 or MLK_E_BUSY. */
static int lock_old(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return 0; /* or there are no locks on this file system */
	return flock(fd, LOCK_SH | LOCK_NB) ? MLK_E_BUSY : 0;
}

/*
 * What has @name in the folder, if it may be replaced: into @st, and locked as long as *@held is
 * open.  @instead is always this user's to replace.  Returns 1, 0: nothing has the name; -EAGAIN:
 * it is another file now; or as mlk_place_take().
 */
static int hold(int dir, const char *name, const struct stat *instead, struct stat *st, int *held)
{
	struct stat locked, behind;

	*held = -1;
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (instead && !is_same(st, instead))
		return MLK_E_OTHER;
	if (S_ISLNK(st->st_mode))
		return fstatat(dir, name, &behind, 0) && errno == ENOENT ? MLK_E_NOWHERE
									 : MLK_E_LINK;
	if (!S_ISREG(st->st_mode))
		return MLK_E_NO_FILE;
	if (!instead && st->st_uid != geteuid())
		return MLK_E_USER;
	*held = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*held < 0 && errno == EACCES)
		return 1; /* a file of ours that we may not read */
	if (*held < 0)
		return errno == ENOENT || errno == ELOOP ? -EAGAIN : -errno;
	if (fstat(*held, &locked) || !is_same(st, &locked))
		return -EAGAIN;
	return lock_old(*held) ? MLK_E_BUSY : 1;
}

static void let_go(int held)
{
	if (held >= 0)
		close(held);
}

#define OLD_MAX (NAME_MAX + sizeof(".old"))

/* The same of NAME.old, which goes into the OLD_MAX bytes at @name. */
static int hold_old(struct mlk_place *place, char *name, int *held)
{
	struct stat st;
	int found;

	snprintf(name, OLD_MAX, "%s.old", place->name);
	found = hold(place->dir, name, NULL, &st, held);
	place->of_old = found < 0;
	return found;
}

/* May the name be taken, as far as is known now? Returns as mlk_place_take(). */
static int look(struct mlk_place *place, const struct stat *instead)
{
	char old[OLD_MAX];
	struct stat st;
	int held, found = hold(place->dir, place->name, instead, &st, &held);

	let_go(held);
	if (found == 1 && !instead) {
		found = hold_old(place, old, &held);
		let_go(held);
	}
	return found < 0 && found != -EAGAIN ? found : 0;
}

/* Is the file that is open as @fd what a killed process left, by its content? */
static bool is_leftover(int fd)
{
	uint8_t bytes[MLK_FILE_HEADER];
	struct mlk_header header;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 0777) != 0600)
		return false;
	if (!st.st_size || mlk_cache_check(fd))
		return true;
	return pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) &&
	       mlk_file_header_unpack(&header, bytes) == 0;
}

/* Remove @name, a file for a trace whose process is gone. */
static void remove_leftover(const struct mlk_place *place, const char *name)
{
	int fd = openat(place->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st, now;

	if (fd < 0)
		return;
	if (is_leftover(fd) && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) &&
	    !fstatat(place->dir, name, &now, AT_SYMLINK_NOFOLLOW) && is_same(&st, &now))
		unlinkat(place->dir, name, 0);
	close(fd);
}

/* The process that gave @name to a file that is to become the trace; 0: it is no such name. */
static pid_t maker_of(const struct mlk_place *place, const char *name)
{
	size_t len = strlen(place->name);
	char again[NAME_MAX + 32];
	long pid;

	if (strncmp(name, place->name, len) || strncmp(name + len, ".part", 5))
		return 0;
	pid = strtol(name + len + 5, NULL, 10);
	/* split(1) and others number pieces from 0, or with zeros before */
	if (pid <= 0 || pid > INT_MAX)
		return 0;
	snprintf(again, sizeof(again), "%s.part%ld", place->name, pid);
	return strcmp(again, name) ? 0 : (pid_t)pid;
}

static void clean_up(const struct mlk_place *place)
{
	int fd = openat(place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)) != NULL) {
		pid_t pid = maker_of(place, entry->d_name);

		if (pid && (pid == getpid() || (kill(pid, 0) && errno == ESRCH)))
			remove_leftover(place, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* Set place->part.  Returns 0 or -ENAMETOOLONG. */
static int name_part(struct mlk_place *place)
{
	char part[sizeof(place->part)];
	int len = snprintf(part, sizeof(part), "%s.part%d", place->name, (int)getpid());

	if (len <= 0 || (size_t)len >= sizeof(part))
		return -ENAMETOOLONG;
	/* A signal handler removes what has this name, and half of it may be another file's: the
	 * trace, or the one that is to be replaced. */
	memcpy(place->part + 1, part + 1, (size_t)len);
	atomic_thread_fence(memory_order_release);
	*(volatile char *)place->part = part[0];
	return 0;
}

/* A way to a file without a name, by which it can be given one. */
static void path_of(int fd, char *path, size_t size)
{
	snprintf(path, size, "/proc/self/fd/%d", fd);
}

/* Create a file without a name: whatever becomes of this process, nothing is left of it.  Returns
 * -1 where that cannot be. */
static int create_unnamed(const struct mlk_place *place)
{
	int fd = openat(place->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[64];

	if (fd < 0)
		return -1;
	path_of(fd, path, sizeof(path));
	if (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
		return fd;
	close(fd);
	return -1;
}

static int create_named(struct mlk_place *place)
{
	int err = name_part(place);

	if (err)
		return err;
	place->fd = openat(place->dir, place->part,
			   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (place->fd >= 0)
		return 0;
	err = -errno;
	place->part[0] = '\0';
	return err;
}

/* Open the folder of @path, and take what is behind its last slash as the name. */
static int open_folder(struct mlk_place *place, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	if (!folder)
		return -ENOMEM;
	place->dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (place->dir < 0)
		return -errno;
	/* room for what is put behind it, too */
	if (strlen(name) + sizeof(".old") > sizeof(place->name))
		return -ENAMETOOLONG;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return MLK_E_NO_FILE;
	memcpy(place->name, name, strlen(name) + 1);
	return 0;
}

int mlk_place_open(struct mlk_place *place, const char *path, const struct stat *instead)
{
	int err;

	*place = (struct mlk_place){.fd = -1, .dir = -1, .path = path};
	err = open_folder(place, path);
	if (!err)
		err = look(place, instead);
	if (!err) {
		clean_up(place);
		place->fd = create_unnamed(place);
		err = place->fd < 0 ? create_named(place) : 0;
	}
	if (err)
		mlk_place_close(place);
	else
		flock(place->fd, LOCK_EX | LOCK_NB); /* no other process can have it */
	return err;
}

/* Link the file to @name, which no file must have.  Returns 0 or -errno. */
static int link_to(const struct mlk_place *place, const char *name)
{
	char path[64];

	path_of(place->fd, path, sizeof(path));
	return linkat(AT_FDCWD, path, place->dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* The same for a file that has a name already, which it loses. */
static int rename_to(const struct mlk_place *place, const char *name)
{
	if (!linkat(place->dir, place->part, place->dir, name, 0)) {
		unlinkat(place->dir, place->part, 0);
		return 0;
	}
	if (errno == EEXIST)
		return -EEXIST;
	/* there are file systems without links, and others without this */
	if (!renameat2(place->dir, place->part, place->dir, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	return renameat(place->dir, place->part, place->dir, name) ? -errno : 0;
}

/* Give the file the name that no file has.  Returns 0, -EAGAIN: another has it now; or -errno. */
static int take_free(struct mlk_place *place)
{
	int err = place->part[0] ? rename_to(place, place->name) : link_to(place, place->name);

	if (!err)
		place->part[0] = '\0';
	return err == -EEXIST ? -EAGAIN : err;
}

/* Give the file a name for now, if it has none.  Returns 0 or -errno. */
static int need_part(struct mlk_place *place)
{
	int err;

	if (place->part[0])
		return 0;
	err = name_part(place); /* before it is there: a signal may come */
	if (!err)
		err = link_to(place, place->part);
	if (err)
		place->part[0] = '\0';
	return err;
}

/* Give the file the name of the one that is held.  Returns 0 or -errno. */
static int replace(struct mlk_place *place)
{
	int err = need_part(place);

	if (!err && renameat(place->dir, place->part, place->dir, place->name))
		err = -errno;
	if (!err)
		place->part[0] = '\0';
	return err;
}

/* Is @name a cache beside a trace, of this user? */
static bool is_own_cache(const struct mlk_place *place, const char *name)
{
	int fd = openat(place->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool is = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		  mlk_cache_check(fd);

	if (fd >= 0)
		close(fd);
	return is;
}

/* The trace is now called @old: so is its cache, which is of no use to another trace. */
static void keep_cache(const struct mlk_place *place, const char *old)
{
	char from[OLD_MAX + sizeof(MLK_CACHE_SUFFIX)], to[sizeof(from)];

	snprintf(from, sizeof(from), "%s" MLK_CACHE_SUFFIX, place->name);
	snprintf(to, sizeof(to), "%s" MLK_CACHE_SUFFIX, old);
	if (is_own_cache(place, to))
		unlinkat(place->dir, to, 0);
	if (is_own_cache(place, from))
		(void)!renameat2(place->dir, from, place->dir, to, RENAME_NOREPLACE);
}

/* Keep the file that has the name, and is held, as NAME.old.  Returns as mlk_place_take(). */
static int keep_old(struct mlk_place *place)
{
	char old[OLD_MAX];
	int held, found = hold_old(place, old, &held), err = found < 0 ? found : 0;

	if (!err && renameat(place->dir, place->name, place->dir, old))
		err = -errno;
	if (!err)
		keep_cache(place, old);
	let_go(held);
	return err;
}

/* One try.  Returns as mlk_place_take(), -EAGAIN: another file has the name now. */
static int try_to_take(struct mlk_place *place, const struct stat *instead)
{
	struct stat st;
	int held, err, found = hold(place->dir, place->name, instead, &st, &held);

	if (found == 1)
		err = instead ? replace(place) : keep_old(place);
	else
		err = found;
	let_go(held);
	if (err || (found == 1 && instead))
		return err;
	return take_free(place);
}

int mlk_place_take(struct mlk_place *place, const struct stat *instead)
{
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < TRIES; i++)
		err = try_to_take(place, instead);
	return err;
}

int mlk_place_check(const struct mlk_place *place, uint64_t bytes)
{
	struct stat st, now;

	if (fstat(place->fd, &st))
		return -errno;
	if (!st.st_nlink)
		return MLK_E_DELETED;
	/* a server may know only after this how long the file is */
	if ((uint64_t)st.st_size != bytes &&
	    (fsync(place->fd) || fstat(place->fd, &st) || (uint64_t)st.st_size != bytes))
		return MLK_E_CHANGED;
	if (lstat(place->path, &now))
		return errno == EACCES ? 0 : MLK_E_MOVED;
	return is_same(&st, &now) ? 0 : MLK_E_MOVED;
}

void mlk_place_forget(const struct mlk_place *place)
{
	if (place->part[0])
		unlinkat(place->dir, place->part, 0);
}

void mlk_place_close(struct mlk_place *place)
{
	if (place->fd >= 0) {
		mlk_place_forget(place);
		/* for a handler: the folder's number may soon be another's */
		place->part[0] = '\0';
		flock(place->fd, LOCK_UN); /* for processes that inherited the descriptor */
		close(place->fd);
	}
	if (place->dir >= 0)
		close(place->dir);
	place->fd = place->dir = -1;
}
