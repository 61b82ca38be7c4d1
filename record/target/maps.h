/* maps.h - the mappings of a process: from /proc/PID/maps, kept up to date by what happens later */
#ifndef RECORD_MAPS_H
#define RECORD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/trace.h"

/* A table of mappings, ascending and not overlapping; the paths belong to it. */
struct maps {
	struct mlk_mapping *v;
	size_t nr, room;
};

/* Read /proc/@pid/maps into @maps, in place of what it held; module ids are empty.
 * Returns 0, -ENOMEM or the -errno of open(2) or read(2), and then @maps is as before. */
int maps_read(struct maps *maps, pid_t pid);

/* As maps_read(), from @fd, such a file's descriptor. */
int maps_read_fd(struct maps *maps, int fd);

/* Read lines of the form of /proc/PID/maps from @text, a NUL-terminated string that is changed.
 * Returns 0 or -ENOMEM; a line that is not of that form is left out. */
int maps_parse(struct maps *maps, char *text);

/* Put @m in (its path is copied), cutting away what it overlaps: the kernel reports new mappings,
 * never old ones that are gone.  Returns 0 or -ENOMEM. */
int maps_add(struct maps *maps, const struct mlk_mapping *m);

/* Would maps_add() of @m cut away anything but the same mapping? */
bool maps_overlaps(const struct maps *maps, const struct mlk_mapping *m);

/* Put in the generated code of @now, which is mapped now, where @maps has nothing, or less of such
 * code.  Returns how many mappings that were, or -ENOMEM. */
int maps_add_generated(struct maps *maps, const struct maps *now);

/* The mapping that holds @addr, or NULL. */
const struct mlk_mapping *maps_find(const struct maps *maps, uint64_t addr);

/* Are @a and @b mappings of the same file? */
bool maps_same_file(const struct mlk_mapping *a, const struct mlk_mapping *b);

/* Is the file of @inode on @dev, or that of @m, mapped anywhere? */
bool maps_have_file(const struct maps *maps, dev_t dev, ino_t inode);
bool maps_have_file_of(const struct maps *maps, const struct mlk_mapping *m);

/* Forget the mappings that are not executable. */
void maps_keep_code(struct maps *maps);

/* Forget all mappings, and keep the table's room, or give that back, too. */
void maps_clear(struct maps *maps);
void maps_release(struct maps *maps);

#endif
