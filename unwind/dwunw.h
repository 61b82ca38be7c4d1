/* dwunw.h - libdwunw: registers + stack bytes + mappings in, frames and names out
 *
 * An unwinder for stacks that were saved earlier, perhaps on another machine.  It never prints; it
 * knows the program only through the ELF images it is given.  Only the stack reader touches another
 * process.  This header is all that a program includes.  Its parts:
 *
 *   dwunw_event.h    an allocation as it is caught, and what may be true of its stack
 *   dwunw_module.h   programs and libraries, and where they are mapped
 *   dwunw_capture.h  from registers and stack bytes to frames
 *   dwunw_stacks.h   the stacks that were found, by their ids
 *   dwunw_symbol.h   names of frames
 *   dwunw_reader.h   registers and stacks of a running process
 *
 * Errors are negative: -ENOMEM, -EINVAL, -ENOENT or one of enum dwunw_error; dwunw_strerror() names
 * them. Nothing here is safe for use by two threads at once on the same struct dwunw.
 */
#ifndef DWUNW_H
#define DWUNW_H

#include "dwunw_capture.h"
#include "dwunw_event.h"
#include "dwunw_module.h"
#include "dwunw_reader.h"
#include "dwunw_stacks.h"
#include "dwunw_symbol.h"

struct dwunw; /* opaque: modules, stacks, and all that was learned of them */

/* Errors that are no errno. */
enum dwunw_error {
	DWUNW_ERR_ELF = -6001,	/* the image is no ELF file that can be read */
	DWUNW_ERR_ARCH = -6002, /* the image or the registers belong to another architecture */
	DWUNW_ERR_ATTACH_DENIED = -6003, /* the kernel does not let us read the process */
	DWUNW_ERR_GONE = -6004,		 /* the process or the thread has ended */
	DWUNW_ERR_OTHER = -6005,	 /* the file has another build-id than the module */
	DWUNW_ERR_NO_DEBUG = -6006,	 /* the file has no debug information */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Static text for an error of this library or a negative errno. */
const char *dwunw_strerror(int err);

/* New unwinder without modules.  *out is NULL on failure.  Returns 0 or -ENOMEM. */
int dwunw_new(struct dwunw **out);

/* New unwinder with the modules of @dw, which have the same numbers; nothing of what was learned,
 * and no directories.  It borrows their images, so @dw must outlive it; once made, each of both may
 * be used by a thread of its own.  *out is NULL on failure.  Returns 0 or -ENOMEM. */
int dwunw_clone(struct dwunw **out, const struct dwunw *dw);

/* Release @dw, its modules and all strings it gave out; NULL is allowed.  Every space made with it
 * must have been freed before. */
void dwunw_free(struct dwunw *dw);

#ifdef __cplusplus
}
#endif

#endif
