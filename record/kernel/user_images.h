/* user_images.h - the code of the programs on whose behalf the kernel allocated
 *
 * A block may be seen seconds after its allocation.  The process may have ended by then, or run
 * another program: what tells is where the memory's stack began and where its code ends.
 */
#ifndef RECORD_USER_IMAGES_H
#define RECORD_USER_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"

struct user_images; /* opaque */

/* The memory of a program, as the copies of user space tell it (bpf/kmem.h). */
struct user_image {
	uint32_t tgid;
	uint64_t image[2];
};

/* None yet, for @writer, which is borrowed.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int user_images_new(struct user_images **out, struct mlk_writer *writer);

/* Read what @of has mapped, if that was not done since the last user_images_look(); its files go
 * into the trace.  *@known: it can be told which code that was.  Returns 0, -ENOMEM or the writer's
 * error. */
int user_images_see(struct user_images *images, const struct user_image *of, bool *known);

/* Have the trace tell what @of has mapped at @time_ns, when an event comes that needs it; the times
 * ascend.  Returns as user_images_see(). */
int user_images_tell(struct user_images *images, const struct user_image *of, uint64_t time_ns);

/* All events are written of which user_images_see() was told: what is not used any more is
 * forgotten. */
void user_images_look(struct user_images *images);

/* Programs and libraries that could not be read. */
uint64_t user_images_unreadable(const struct user_images *images);

/* Snapshots of mappings that were too large for the trace. */
uint64_t user_images_too_large(const struct user_images *images);

/* Release @images; NULL is allowed. */
void user_images_free(struct user_images *images);

#endif
