/* spaces.h - which address space an event happened in: the snapshots of the maps, by time */
#ifndef REPORT_SPACES_H
#define REPORT_SPACES_H

#include "report/images.h"

struct spaces; /* opaque */

/* No snapshots yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int spaces_new(struct spaces **out);

/* Take in a snapshot.  Its executable mappings are copied, their modules noted in @images.
 * Returns 0 or -ENOMEM. */
int spaces_add(struct spaces *spaces, const struct mlk_maps *maps, struct images *images);

/*
 * Make the unwinder's spaces, after the last spaces_add() and after images_load() of the same
 * @images.  Mappings that end before they start are left out.  @dw must outlive @spaces.
 * Returns 0 or -ENOMEM.
 */
int spaces_build(struct spaces *spaces, const struct images *images, struct dwunw *dw);

/*
 * The space of process @tgid at @time_ns (CLOCK_MONOTONIC): of the last snapshot that is not later,
 * else of the first.  A process without any has a space without mappings.  After spaces_build();
 * valid until spaces_free().
 */
struct dwunw_space *spaces_find(const struct spaces *spaces, uint32_t tgid, uint64_t time_ns);

/* Whether module @number of the images given to spaces_add() is mapped executable in a snapshot. */
bool spaces_use(const struct spaces *spaces, uint32_t number);

/* Release @spaces; NULL is allowed. */
void spaces_free(struct spaces *spaces);

#endif
