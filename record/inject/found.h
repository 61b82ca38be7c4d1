/* found.h - what a recorder has put into a process, as that is found there */
#ifndef RECORD_INJECT_FOUND_H
#define RECORD_INJECT_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/inject/threads.h"
#include "record/injected/injected.h"
#include "record/target/maps.h"

/* Of one process.  What it says may be the target's: hostile. */
struct found {
	pid_t pid;
	int mem; /* /proc/PID/mem; -1: not open */
	struct maps maps;
	struct inject_inside inside;
	struct injected injected;
	uint64_t rings; /* 0: they are not mapped */
};

/* What the image says of itself. */
enum image_found {
	IMAGE_NONE, /* none was ever in use */
	IMAGE_OURS,
	IMAGE_OTHER, /* of another build of mleak */
};

/* Is @m a mapping of the code or an island, or of the rings? */
bool found_is_code(const struct mlk_mapping *m);
bool found_is_rings(const struct mlk_mapping *m);

/* Read what process @pid has mapped: found_free() releases *@out, which is NULL on failure.
 * Returns 0, or -errno with the reason in @why, INJECT_WHY bytes. */
int found_new(struct found **out, pid_t pid, char *why);

/* Open its memory, to read and write.  Returns as found_new(). */
int found_open(struct found *f, char *why);

/* Read the image, inside and injected, whose memory is open. */
enum image_found found_image(struct found *f);

/* Does a recorder that lives read the rings?  After found_image(). */
bool found_is_recorded(const struct found *f);

/* Read @bytes at @at.  Returns whether all of them could be. */
bool found_read(const struct found *f, uint64_t at, void *to, size_t bytes);

/* NULL is allowed. */
void found_free(struct found *f);

#endif
