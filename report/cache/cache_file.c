/* cache_file.c - see cache_file.h */
#include "report/cache/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OTHERS_MAY_WRITE 022

static const struct mlk_place *volatile written; /* for a signal handler; NULL: none is */

/* They end a process that knows nothing better. */
static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/* Where files need names from the beginning, what is not whole is not to stay. */
static void on_signal(int signal_number)
{
	const struct mlk_place *place = written;

	if (place)
		mlk_place_forget(place);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Have the handler @to where it is @from. */
static void change_handlers(void (*from)(int), void (*to)(int))
{
	struct sigaction now;

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!sigaction(signals[i], NULL, &now) && now.sa_handler == from)
			signal(signals[i], to);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is the trace the file that has the name in the folder?  So nobody who can change the way there
 * has a cache written elsewhere. */
static bool is_beside(int dir, const struct cache_file *file)
{
	const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
	size_t len = strlen(name) - strlen(MLK_CACHE_SUFFIX);
	char trace[NAME_MAX + 1];
	struct stat st;

	if (len >= sizeof(trace))
		return false;
	memcpy(trace, name, len);
	trace[len] = '\0';
	return !fstatat(dir, trace, &st, AT_SYMLINK_NOFOLLOW) && is_same(&st, &file->trace);
}

int cache_file_find(struct cache_file *file, const struct mlk_reader *trace, const char *path)
{
	int err = mlk_reader_stat(trace, &file->trace);
	char *real = err ? NULL : realpath(path, NULL); /* behind links */

	if (err)
		return err;
	if (!real)
		return -errno;
	if (asprintf(&file->path, "%s" MLK_CACHE_SUFFIX, real) < 0)
		file->path = NULL;
	free(real);
	return file->path ? 0 : -ENOMEM;
}

/* The folder, if the trace is in it; -1: it is not. */
static int open_folder(const struct cache_file *file)
{
	char *folder = strndup(file->path, (size_t)(strrchr(file->path, '/') - file->path) + 1);
	int dir = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	free(folder);
	if (dir >= 0 && is_beside(dir, file))
		return dir;
	if (dir >= 0)
		close(dir);
	return -1;
}

/* Is it a file of one who may make the report say anything? */
static bool is_of_ours(const struct cache_file *file, const struct stat *st)
{
	return S_ISREG(st->st_mode) &&
	       (st->st_uid == geteuid() || !st->st_uid || st->st_uid == file->trace.st_uid);
}

/* The trace may have been made private since. */
static void take_access(const struct cache_file *file, int fd, const struct stat *st)
{
	const mode_t allowed = (file->trace.st_mode & 0444) | 0600, mode = st->st_mode & 07777;

	if (mode & ~allowed)
		(void)!fchmod(fd, mode & allowed);
}

int cache_file_open(struct cache_file *file)
{
	int dir = open_folder(file), fd;
	struct stat st;

	if (dir < 0)
		return -1;
	fd = openat(dir, strrchr(file->path, '/') + 1,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(dir);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && is_of_ours(file, &st) && mlk_cache_check(fd)) {
		file->old = st;
		/* else it may be anyone's by now, and is only good to be replaced */
		if (!(st.st_mode & OTHERS_MAY_WRITE)) {
			take_access(file, fd, &st);
			return fd;
		}
	}
	close(fd);
	return -1;
}

/* Is what was found the user's to replace?  Root may replace that of the trace's owner. */
static bool may_replace(const struct cache_file *file)
{
	return !file->old.st_nlink || file->old.st_uid == geteuid() || !geteuid();
}

/* Can the new file be one that is believed?  Not where all files are everyone's, as vfat may be
 * mounted: a cache would be written by each report, and read by none. */
static bool can_be_ours_alone(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !(st.st_mode & OTHERS_MAY_WRITE);
}

int cache_file_create(struct cache_file *file)
{
	int err, dir;

	if (!may_replace(file))
		return MLK_E_USER;
	/* nothing is done in another folder: what was left there is not ours */
	dir = open_folder(file);
	if (dir < 0)
		return MLK_E_OTHER;
	close(dir);
	written = &file->place;
	change_handlers(SIG_DFL, on_signal);
	/* where no cache was found, no file may have the name: none has the number 0 */
	err = mlk_place_open(&file->place, file->path, &file->old);
	if (err)
		return err;
	err = !is_beside(file->place.dir, file)	  ? MLK_E_OTHER
	      : can_be_ours_alone(file->place.fd) ? 0
						  : -EPERM;
	if (err)
		cache_file_drop(file);
	return err;
}

/* Let those users read the cache who can read the trace, and no others; none can write it but its
 * owner. */
static void set_access(const struct cache_file *file)
{
	mode_t mode = (file->trace.st_mode & 0444) | 0600;

	/* only root may give a file away, but a member of a group may give it to that group */
	if (fchown(file->place.fd, file->trace.st_uid, file->trace.st_gid) &&
	    fchown(file->place.fd, (uid_t)-1, file->trace.st_gid))
		mode &= ~(mode_t)070;
	(void)!fchmod(file->place.fd, mode);
}

int cache_file_commit(struct cache_file *file)
{
	int err;

	set_access(file);
	/* the trace may have been replaced meanwhile */
	err = is_beside(file->place.dir, file) ? mlk_place_take(&file->place, &file->old)
					       : MLK_E_OTHER;
	cache_file_drop(file);
	return err;
}

void cache_file_drop(struct cache_file *file)
{
	mlk_place_close(&file->place);
	if (written != &file->place)
		return;
	written = NULL;
	change_handlers(on_signal, SIG_DFL);
}

void cache_file_release(struct cache_file *file)
{
	cache_file_drop(file);
	free(file->path);
	file->path = NULL;
}
