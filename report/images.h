/* images.h - the modules of a trace: put their ELF images together and give them to the unwinder */
#ifndef REPORT_IMAGES_H
#define REPORT_IMAGES_H

#include <stdbool.h>

#include "format/trace.h"
#include "unwind/dwunw.h"

struct images; /* opaque */

/* Most bytes that all images of a trace may have together; those beyond are treated as absent. */
#define IMAGES_MAX_BYTES ((uint64_t)1 << 30)

/* No modules yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int images_new(struct images **out);

/*
 * Find the module with this id, or note that there is one; a module without an id is told from
 * others by its path.  @path is copied.
 * On success *@number is its number, from 0 in the order of addition.  Returns 0 or -ENOMEM.
 */
int images_intern(struct images *images, const struct mlk_id *id, const char *path,
		  uint32_t *number);

/*
 * Take in the next piece of a module's image; its bytes are copied.  A piece that does not go on
 * where the last one ended makes its image absent, unless it is a first piece: then it begins
 * again. Returns 0 or -ENOMEM.
 */
int images_add_piece(struct images *images, const struct mlk_module *piece);

/* Add every complete image to @dw, which borrows it: @images must outlive @dw.  To be called once.
 * An image that @dw refuses is treated as absent.  Returns 0 or -ENOMEM. */
int images_load(struct images *images, struct dwunw *dw);

/* The unwinder's number of module @number, or DWUNW_NO_MODULE when it is absent or not loaded. */
uint32_t images_module(const struct images *images, uint32_t number);

/* Path of module @number as it was first seen; valid until images_free(). */
const char *images_path(const struct images *images, uint32_t number);

/* Modules noted so far, absent ones too. */
size_t images_nr(const struct images *images);

/* Release @images; NULL is allowed. */
void images_free(struct images *images);

#endif
