/* folded_frames.h - paths of labels as folded stacks, where functions of one name and of different
 * modules, called from the same, are two frames: `NAME [MODULE]` */
#ifndef REPORT_FOLDED_FRAMES_H
#define REPORT_FOLDED_FRAMES_H

#include "report/name/labels.h"

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
