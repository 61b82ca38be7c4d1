/* trace_modules.h - the modules of a trace: put their ELF images together and give them to the
 * unwinder */
#ifndef REPORT_TRACE_MODULES_H
#define REPORT_TRACE_MODULES_H

#include <stdbool.h>

#include "format/trace.h"
#include "report/base/hash_index.h"
#include "report/base/strings.h"
#include "report/trace/interpreted.h"
#include "unwind/dwunw.h"

/* Most bytes that all images of a trace may have together; those beyond are treated as absent. */
#define IMAGES_MAX_BYTES ((uint64_t)1 << 30)

/* Most names of generated code, which are modules that the unwinder does not have. */
#define IMAGES_MAX_NAMES (1u << 20)

/* Most modules of a trace; memory mapped from those beyond is taken for anonymous. */
#define IMAGES_MAX (1u << 16)

/* A program or library, and as much of its image as the trace has. */
struct trace_module {
	struct mlk_id id;
	char *path;
	uint8_t *bytes;
	size_t len, room; /* bytes so far */
	uint64_t whole;	  /* bytes of the whole image; 0: nothing of it was seen */
	bool broken;	  /* a piece is missing or does not fit */
	uint32_t module;
	bool tried; /* to load it, with the bytes that there were then, */
	size_t tried_len;
};

/* The modules by number, absent ones too; valid until trace_modules_free(). */
struct trace_modules {
	INTERN_OF(struct trace_module);
	uint64_t bytes;	   /* of all images */
	uint64_t began_ns; /* when the recording began, since 1970 */
	bool overflown;
	uint32_t nr_names; /* of these, of generated code */
	uint32_t *numbers; /* by the unwinder's number of a module: its own, plus one */
	size_t nr_numbers;
	struct strings *remarks;	/* in place of functions; NULL: none yet */
	struct interpreted interpreted; /* what is in none of them */
};

/* No modules yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int trace_modules_new(struct trace_modules **out);

/*
 * Find the module with this id, or note that there is one; a module without an id is distinguished
 * from others by its path.  @path is copied.  On success *@number is its number, from 0 in the
 * order of addition, or DWUNW_NO_MODULE beyond IMAGES_MAX.  Returns 0 or -ENOMEM.
 */
int trace_modules_intern(struct trace_modules *images, const struct mlk_id *id, const char *path,
			 uint32_t *number);

/* The same of the function @name of generated code, which has no id; DWUNW_NO_MODULE beyond
 * IMAGES_MAX_NAMES. */
int trace_modules_intern_name(struct trace_modules *images, const char *name, uint32_t *number);

/*
 * Take in the next piece of a module's image; its bytes are copied.  A piece that does not go on
 * where the last one ended makes its image absent, unless it is a first piece: then it begins
 * again. Returns 0 or -ENOMEM.
 */
int trace_modules_add_piece(struct trace_modules *images, const struct mlk_module *piece);

/* Add every complete image to @dw, which borrows it: @images must outlive @dw.  To be called again
 * when more pieces were added.
 * In place of an image that is incomplete, or that @dw refuses, the file itself is taken if it is
 * here, or one of its build-id is below @dw's debug directories; otherwise the module is absent.
 * Returns 0 or -ENOMEM. */
int trace_modules_load(struct trace_modules *images, struct dwunw *dw);

/* A number for frames in module @number, which the unwinder does not have: none of the unwinder's,
 * and not DWUNW_NO_MODULE. */
uint32_t trace_modules_absent(uint32_t number);

/* The path of the module behind such a number; NULL for any other. */
const char *trace_modules_absent_path(const struct trace_modules *images, uint32_t module);

/* The number that frames in the module with this id and path have: the unwinder's, or that of
 * trace_modules_absent().  Returns false when there is no such module. */
bool trace_modules_find(const struct trace_modules *images, const struct mlk_id *id,
			const char *path, uint32_t *module);

/* The same of the first one with this path, which the unwinder has.  False: there is none. */
bool trace_modules_find_path(const struct trace_modules *images, const char *path,
			     uint32_t *module);

/* The number, from 0, of the module that frames call @module; false for any other. */
bool trace_modules_number(const struct trace_modules *images, uint32_t module, uint32_t *number);

/* Make *@frame one that is in no module, and has @text, which is copied, for a name.  Returns 0 or
 * -ENOMEM. */
int trace_modules_remark(struct trace_modules *images, const char *text, struct dwunw_frame *frame);

/* What such a frame says, valid until trace_modules_free(); NULL for any other. */
const char *trace_modules_remark_text(const struct trace_modules *images,
				      const struct dwunw_frame *frame);

/* The id of the module that frames call @module, which is the unwinder's number or that of
 * trace_modules_absent(); NULL for any other.  Valid until trace_modules_free(). */
const struct mlk_id *trace_modules_id(const struct trace_modules *images, uint32_t module);

/* Release @images; NULL is allowed. */
void trace_modules_free(struct trace_modules *images);

#endif
