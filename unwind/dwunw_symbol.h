/* dwunw_symbol.h - part of dwunw.h: names of frames */
#ifndef DWUNW_PART_SYMBOL_H
#define DWUNW_PART_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwunw_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Add @dir (as /usr/lib/debug, holding .build-id/xx/yyyy.debug) to the directories where files with
 * debug information are looked for, after those added before.  /usr/lib/debug is not implied.
 * @dir is copied.  Returns 0 or -ENOMEM. */
int dwunw_debug_dir_add(struct dwunw *dw, const char *dir);

/* Look for programs, libraries and the debug files next to them below @dir, as in the root
 * directory of another system, before their own paths; a file with another build-id is never used.
 * @dir is copied, and replaces an earlier one.  Returns 0 or -ENOMEM. */
int dwunw_symfs_set(struct dwunw *dw, const char *dir);

/* Have lines and inlined calls of @module taken from the file at @path, which is copied, before any
 * other file is looked for.  To be said before the first name is requested.  Returns 0, -ENOMEM,
 * -ENOENT (no module, or no regular file that can be opened), DWUNW_ERR_ELF (nor one that was
 * linked), DWUNW_ERR_OTHER or DWUNW_ERR_NO_DEBUG. */
int dwunw_debug_file_set(struct dwunw *dw, uint32_t module, const char *path);

/* What the system says of a file. */
struct dwunw_file_state {
	uint64_t inode, size;
	uint64_t modified;  /* seconds since 1970 */
	uint64_t latest_ns; /* the same in nanoseconds is at most this */
};

/* Say what the file of @module was when it was loaded.  Of one without build-id, that is how the
 * file at its path is known to be the same, and names and lines are taken from it.  To be said
 * before the first name is requested.  Returns 0 or -ENOENT (no such module). */
int dwunw_file_state_set(struct dwunw *dw, uint32_t module, const struct dwunw_file_state *state);

/* Say that DWUNW_KERNEL_PATH is the Linux kernel @release, as `uname -r` has it, and that others
 * whose paths are names in brackets are modules of it.  Their debug files are then looked for below
 * the directories of dwunw_debug_dir_add() also where distributions install them, as
 * boot/vmlinux-RELEASE; and those of modules, which were not linked, are read.  @release is copied,
 * and replaces an earlier one.  Returns 0 or -ENOMEM. */
int dwunw_kernel_release_set(struct dwunw *dw, const char *release);

/* Whether names of C++ and Rust are to be demangled, as they are at first.  To be said before the
 * first name is requested. */
void dwunw_demangle_set(struct dwunw *dw, bool demangle);

/* Fetches the file with debug information whose GNU build-id is the @len bytes at @build_id, be it
 * over the network.  Returns its path, to be released with free(), or NULL when there is none. */
typedef char *dwunw_debug_fetch(void *arg, const uint8_t *build_id, size_t len);

/* Have @fetch, called with @arg, asked for debug information that is found nowhere else; NULL: ask
 * no server, as at first.  The library itself never uses the network. */
void dwunw_debug_fetch_set(struct dwunw *dw, dwunw_debug_fetch *fetch, void *arg);

/* A function that the compiler inlined where the place is.  Strings are valid until dwunw_free().
 */
struct dwunw_inline {
	const char *function; /* demangled, if requested; NULL when not known */
	const char *file;     /* where in this function the place is, or where in it the function */
	uint32_t line;	      /* was called that is inlined in turn; as in struct dwunw_symbol */
};

/* The name of a place in the code.  Strings are valid until dwunw_free().  File and line are those
 * in the function named: of code that was inlined into it, those of the call. */
struct dwunw_symbol {
	const char *function; /* demangled, 4096 bytes at most; NULL when no symbol covers the place
			       */
	uint64_t offset;      /* bytes from the function's start to frame->addr */
	const char *file;     /* source file as the compiler was given it; NULL when not known */
	uint32_t line;	      /* from 1; 0 when not known */
	const struct dwunw_inline *inlined; /* innermost first; valid until dwunw_free() */
	size_t nr_inlined;		    /* mostly 0 */
};

/*
 * Name @nr_frames frames; out[i] belongs to frames[i].  A frame with DWUNW_FRAME_FLAG_RETURN is
 * looked up one byte earlier, so that the line is that of the call.  What is not known stays NULL
 * or 0. Returns 0 or -ENOMEM.
 */
int dwunw_symbol_resolve_batch(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr_frames,
			       struct dwunw_symbol *out);

/* Read what names in @module are found with, which otherwise happens once the first is requested.
 * Threads may do so at the same time, each of other modules, while nothing else is requested of
 * @dw.  Nothing is done if dwunw_debug_fetch_set() gave a function.  Returns 0 or -ENOMEM. */
int dwunw_symbol_prepare(struct dwunw *dw, uint32_t module);

/*
 * The name of the variable or table at @offset, bytes into the file of @module: demangled, as
 * "vtable for X".  *name is to be released with free(); NULL: none is known.  All symbols of the
 * module are looked at.  Returns 0 or -ENOMEM.
 */
int dwunw_object_name(struct dwunw *dw, uint32_t module, uint64_t offset, char **name);

/* Why a module has no better names. */
enum dwunw_note {
	/* it has debug information that cannot be read: damaged, or compressed in an unknown way */
	DWUNW_NOTE_UNREADABLE = 1 << 0,
	/* the file to which dwz moved a part of the debug information was not found */
	DWUNW_NOTE_NO_ALT = 1 << 1,
	/* inlined calls are in .dwo files, which are not read */
	DWUNW_NOTE_SPLIT = 1 << 2,
	/* its .gnu_debugdata, the symbols of a stripped file, cannot be read */
	DWUNW_NOTE_BAD_MINIDEBUG = 1 << 3,
	/* there was too little memory to read its debug information, or a part of it */
	DWUNW_NOTE_NO_MEMORY = 1 << 4,
};

/* Bits of enum dwunw_note for @module, by the names that were requested so far; 0 for a module that
 * is not known. */
uint32_t dwunw_module_notes(const struct dwunw *dw, uint32_t module);

/* Static text for one bit: "debug information that cannot be read", ... */
const char *dwunw_note_text(enum dwunw_note note);

#ifdef __cplusplus
}
#endif

#endif
