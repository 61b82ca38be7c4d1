/* address_spaces.h - which address space an event happened in: the snapshots of the maps, by time */
#ifndef REPORT_SPACES_H
#define REPORT_SPACES_H

#include "report/trace/trace_modules.h"

struct spaces; /* opaque */

/* Most executable mappings that all snapshots of a trace may have together, where equal snapshots
 * count once (but as one mapping each).  Real programs have some hundreds. */
#define SPACES_MAX_MAPPINGS ((size_t)4 << 20)

/* One layout of an address space, whichever processes had it, and when. */
struct space {
	/* with images_absent() for modules that the unwinder does not have */
	struct dwunw_space *modules;
	struct dwunw_mapping *maps; /* of spaces.c: by numbers of images, until it is built */
	size_t nr_maps;
};

/* No snapshots yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int spaces_new(struct spaces **out);

/*
 * Take in a snapshot.  Its executable mappings are copied, their modules noted in @images; those
 * that end before they start are left out.  Beyond SPACES_MAX_MAPPINGS it is ignored and counted.
 * Returns 0 or -ENOMEM.
 */
int spaces_add(struct spaces *spaces, const struct mlk_maps *maps, struct images *images);

/* Make ready for spaces_find(), after the last spaces_add() and after images_load() of the same
 * @images.  @images and @dw must outlive @spaces.  Returns 0 or -ENOMEM. */
int spaces_prepare(struct spaces *spaces, const struct images *images, struct dwunw *dw);

/*
 * Find the space of process @tgid at @time_ns (CLOCK_MONOTONIC): of the last snapshot that is not
 * later, else of the first.  A process without any has a space without mappings.
 * *@out is valid until spaces_free(), and the same for equal layouts; NULL on failure.
 * Returns 0 or -ENOMEM.
 */
int spaces_find(struct spaces *spaces, uint32_t tgid, uint64_t time_ns, const struct space **out);

/*
 * The same spaces for @dw, which has the modules of the unwinder of @spaces, as dwunw_clone() makes
 * it; for another thread.  After spaces_prepare(), and in place of spaces_find() in @spaces, which
 * no thread may change then; it and @dw must outlive the copy.  *@out is NULL on failure.  Returns
 * 0 or -ENOMEM.
 */
int spaces_share(struct spaces **out, const struct spaces *spaces, struct dwunw *dw);

/* Whether module @number of the images given to spaces_add() is mapped executable in a snapshot. */
bool spaces_use(const struct spaces *spaces, uint32_t number);

/* Snapshots that were ignored. */
size_t spaces_ignored(const struct spaces *spaces);

/* Release @spaces; NULL is allowed. */
void spaces_free(struct spaces *spaces);

#endif
