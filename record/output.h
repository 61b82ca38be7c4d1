/* output.h - the trace's file: made anew, never through a link, readable for its owner alone */
#ifndef RECORD_OUTPUT_H
#define RECORD_OUTPUT_H

#include <stdbool.h>

struct output {
	const char *path; /* borrowed */
	int fd;
	bool kept; /* a file that was there is now at path.old */
};

/*
 * Create the file @path, mode 0600; a regular file of that name is kept as @path.old.
 * On failure one sentence was logged and nothing was changed.  Returns 0 or -errno.
 */
int output_create(struct output *o, const char *path);

/* Close the file, which is complete. */
void output_close(struct output *o);

/* Take back output_create(): remove the file and give the kept one its name again. */
void output_discard(struct output *o);

#endif
