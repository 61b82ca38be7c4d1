/* trace_file.h - the trace's file: made anew, never through a link, readable for its owner alone */
#ifndef RECORD_TRACE_FILE_H
#define RECORD_TRACE_FILE_H

#include "format/place.h"

/*
 * Create a file for the trace @path next to it, as mlk_place_open() does.
 * On failure one sentence was logged and nothing was changed.  Returns 0 or an error.
 */
int trace_file_create(struct mlk_place *place, const char *path);

/* Give the file its name; a regular file that has it is kept as path.old.  On failure one sentence
 * was logged.  Returns 0 or an error. */
int trace_file_commit(struct mlk_place *place);

/* Is the file, to which @bytes were written, still there and whole?  If not, one sentence was
 * logged.  Returns 0 or an error. */
int trace_file_check(const struct mlk_place *place, uint64_t bytes);

#endif
