/* place.h - where a new trace goes: it takes the place of nothing that is not the user's to give */
#ifndef MLK_PLACE_H
#define MLK_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * A file that gets its name when it is certain that there will be a trace.  Until it is closed it
 * is locked, flock(2), exclusively: so others know that it is being written.
 */
struct mlk_place {
	int fd;		  /* of the file, open for reading and writing; -1: there is none */
	int dir;	  /* the folder, which stays the same whatever becomes of the path to it */
	const char *path; /* borrowed */
	char name[NAME_MAX + 1]; /* in the folder */
	char part[NAME_MAX + 1]; /* what it has there for now; "": no name, or its own */
	bool of_old;		 /* the last error is about NAME.old */
};

/*
 * Create an empty file for the trace @path, mode 0600, in the folder that this leads to; the last
 * part of @path is not followed if it is a symbolic link.  Files that were left there for the same
 * trace by processes that were killed are removed.  @path is borrowed until mlk_place_close().
 *
 * On failure nothing was changed and there is nothing to close.  Returns 0, -errno, or what
 * mlk_place_take() with @instead would return as things are now.
 */
int mlk_place_open(struct mlk_place *place, const char *path, const struct stat *instead);

/*
 * Give the file its name.  A file that has it must be a regular one of this user that no process is
 * writing.  It is kept as NAME.old, for which the same holds, and its cache with it.  Or, if
 * @instead is not NULL, it must be the file that this describes, of whatever user, which is
 * replaced.
 *
 * Returns 0, -errno, MLK_E_NO_FILE, MLK_E_LINK, MLK_E_NOWHERE, MLK_E_USER, MLK_E_BUSY (another
 * process writes a trace to it) or MLK_E_OTHER (it is not @instead).
 */
int mlk_place_take(struct mlk_place *place, const struct stat *instead);

/*
 * Is the file, to which @bytes were written, what its path leads to, and as long as it should be?
 * Where the path cannot be followed any more for lack of rights, the file alone is examined.
 * Returns 0, MLK_E_DELETED, MLK_E_MOVED or MLK_E_CHANGED.
 */
int mlk_place_check(const struct mlk_place *place, uint64_t bytes);

/* Remove the file if it has no name of its own yet; may be called by a signal handler. */
void mlk_place_forget(const struct mlk_place *place);

/* Close the file, and remove it if it has no name of its own.  Nothing is done after a failure of
 * mlk_place_open(), or when it was closed before. */
void mlk_place_close(struct mlk_place *place);

#endif
