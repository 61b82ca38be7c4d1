/* print_folded.h - folded stacks, one a line, for flamegraph.pl, inferno, speedscope and others */
#ifndef REPORT_PRINT_FOLDED_H
#define REPORT_PRINT_FOLDED_H

#include <stdio.h>

#include "report/name/labels.h"
#include "report/view/view.h"

/*
 * Turn @name into one frame of the folded format: no ';', no control character, no space at its
 * ends, not empty, "-" or "--", no '#' at its beginning, no space and number at its end.
 * Returns a string that the caller frees, or NULL when there is no memory.
 */
char *folded_frame(const char *name);

/*
 * Print the stacks of @view as `COMM;FRAME;FRAME COST`, sorted by bytes of the line, equal stacks
 * as one.  Stacks whose cost is 0 are left out; a count above 2^53-1 is printed as that.
 * Returns 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
int print_folded(FILE *out, const char *comm, const struct view *view);

struct folded_frames; /* opaque */

/* The frames of all @labels, borrowed until folded_frames_free().  *@out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int folded_frames_new(struct folded_frames **out, const struct labels *labels);

/* Is it of use to note paths: are there functions of one name? */
bool folded_frames_wants_paths(const struct folded_frames *frames);

/* Note the path of a stack that is to be shown, from the root.  Returns 0 or -ENOMEM. */
int folded_frames_add(struct folded_frames *frames, const uint32_t *path, size_t nr);

/* All paths are noted: find those of whose frames the modules are to be told.  Returns 0 or
 * -ENOMEM. */
int folded_frames_finish(struct folded_frames *frames);

/* `COMM;FRAME;FRAME` of a path that was noted; @comm is a frame by itself.  Returns a string that
 * the caller frees, or NULL when there is no memory. */
char *folded_frames_stack(const struct folded_frames *frames, const char *comm,
			  const uint32_t *path, size_t nr);

/* Release @frames; NULL is allowed. */
void folded_frames_free(struct folded_frames *frames);

#endif
