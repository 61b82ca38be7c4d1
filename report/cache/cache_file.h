/* cache_file.h - where the cache of a trace is: which file is believed, and which may be replaced
 *
 * The file is in the folder of the trace.  Only what the user, root or the owner of the trace has
 * written is read: who owns a trace may make its report say anything, others must not.
 */
#ifndef REPORT_CACHE_FILE_H
#define REPORT_CACHE_FILE_H

#include "format/cache.h"
#include "format/place.h"

/* Where a cache is.  All zero but the place, which is that of CACHE_FILE_NONE, is nowhere. */
struct cache_file {
	char *path;		/* of the cache, in the folder where the trace itself is */
	struct stat trace;	/* of the trace */
	struct stat old;	/* of the cache that is there; all zero: there is none */
	struct mlk_place place; /* of the one that is written */
};

#define CACHE_FILE_NONE                         \
	{                                       \
		.place = {.fd = -1, .dir = -1 } \
	}

/* Find where the cache of the trace that @trace reads from @path would be.  Returns 0, -ENOMEM,
 * -errno of a system call, or MLK_E_OTHER: @path is of another file now.  @file is to be released
 * in any case. */
int cache_file_find(struct cache_file *file, const struct mlk_reader *trace, const char *path);

/* Open the cache for reading, if one is there that may be believed.  One that others may write is
 * not, but it may be replaced.  Returns a file descriptor, or -1.  Who may not read the trace any
 * more may not read the cache from now on, either. */
int cache_file_open(struct cache_file *file);

/*
 * Create the file of a new cache: file->place.fd, open for writing, without the name.  A cache that
 * is there must be the user's to replace; other files are not.  Until it has the name or is
 * dropped, a signal that would end this process removes it first.  Returns 0, -errno (-EPERM:
 * others could write any file there), or as mlk_place_open().
 */
int cache_file_create(struct cache_file *file);

/* Give it the name, in place of the cache that was there; whoever could read the trace can read it.
 * Returns as mlk_place_take(). */
int cache_file_commit(struct cache_file *file);

/* Forget what is being written: nothing of it is left. */
void cache_file_drop(struct cache_file *file);

/* Release what @file holds. */
void cache_file_release(struct cache_file *file);

#endif
