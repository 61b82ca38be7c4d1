/* output.h - the trace's file: made anew, never through a link, readable for its owner alone */
#ifndef RECORD_OUTPUT_H
#define RECORD_OUTPUT_H

#include <limits.h>

/* A file that has another name until it is certain that there will be a trace. */
struct output {
	const char *path; /* borrowed */
	int fd;
	char part[PATH_MAX]; /* its name for now; "" once it has its own */
};

/*
 * Create a file for the trace @path next to it, mode 0600.
 * On failure one sentence was logged and nothing was changed.  Returns 0 or -errno.
 */
int output_create(struct output *o, const char *path);

/* Give the file its name; a regular file that has it is kept as path.old.  On failure one sentence
 * was logged.  Returns 0 or -errno. */
int output_commit(struct output *o);

/* Close the file; remove it if it was not committed. */
void output_close(struct output *o);

#endif
