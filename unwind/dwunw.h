/* dwunw.h - libdwunw: registers + stack bytes + mappings in, frames and names out
 *
 * An unwinder for stacks that were saved earlier, perhaps on another machine.  It never touches the
 * process it unwinds and never prints; it knows the program only through the ELF images it is
 * given.
 *
 * Errors are negative: -ENOMEM, -EINVAL, -ENOENT or one of enum dwunw_error; dwunw_strerror() names
 * them. Nothing here is safe for use by two threads at once on the same struct dwunw.
 */
#ifndef DWUNW_H
#define DWUNW_H

#include <stddef.h>
#include <stdint.h>

#include "dwunw_event.h"

struct dwunw;	    /* opaque: modules, and all that was learned of them */
struct dwunw_space; /* opaque: one epoch of one address space (which module is mapped where) */

enum dwunw_error {
	DWUNW_ERR_ELF = -6001,	/* the image is no ELF file that can be read */
	DWUNW_ERR_ARCH = -6002, /* the image or the registers belong to another architecture */
};

/* Static text for an error of this library or a negative errno. */
const char *dwunw_strerror(int err);

/* New unwinder without modules.  *out is NULL on failure.  Returns 0 or -ENOMEM. */
int dwunw_new(struct dwunw **out);

/* Release @dw, its modules and all strings it gave out; NULL is allowed.  Every space made with it
 * must have been freed before. */
void dwunw_free(struct dwunw *dw);

/* Add @dir (as /usr/lib/debug, holding .build-id/xx/yyyy.debug) to the directories where files with
 * debug information are looked for, after those added before.  /usr/lib/debug is not implied.
 * @dir is copied.  Returns 0 or -ENOMEM. */
int dwunw_debug_dir_add(struct dwunw *dw, const char *dir);

/* Fetches the file with debug information whose GNU build-id is the @len bytes at @build_id, be it
 * over the network.  Returns its path, to be released with free(), or NULL when there is none. */
typedef char *dwunw_debug_fetch(void *arg, const uint8_t *build_id, size_t len);

/* Have @fetch, called with @arg, asked for debug information that is found nowhere else; NULL: ask
 * nobody, as at first.  The library itself never uses the network. */
void dwunw_debug_fetch_set(struct dwunw *dw, dwunw_debug_fetch *fetch, void *arg);

#define DWUNW_NO_MODULE UINT32_MAX

/*
 * Add the program or library that was loaded from @path.
 *
 * @image: @image_len bytes of an ELF file; either the whole file or one that was reduced to its
 *         headers and the sections .eh_frame, .eh_frame_hdr, .debug_frame and symbol tables, with
 * the program headers as they were in the whole file.  Borrowed until dwunw_free().
 * @path:  copied; used to find the file again for line numbers, and only if its build-id is the
 * same.
 *
 * On success *module is its number (from 0, in order of addition).
 * Returns 0, -ENOMEM, DWUNW_ERR_ELF or DWUNW_ERR_ARCH.
 */
int dwunw_module_add(struct dwunw *dw, uint32_t *module, const char *path, const void *image,
		     size_t image_len);

/*
 * Add the file at @path itself, for a trace that does not hold what it needs of it.  Only a regular
 * file of 1 GiB at most, not below /proc, /sys or /dev, whose GNU build-id is the @build_id_len
 * bytes at @build_id, is taken; it is mapped, and must not be cut short, until dwunw_free().
 *
 * @path: absolute; copied.
 *
 * On success *module is its number as for dwunw_module_add(), else DWUNW_NO_MODULE.
 * Returns 0, -ENOMEM, -ENOENT (no such file, or one with another build-id or none), DWUNW_ERR_ELF
 * or DWUNW_ERR_ARCH.
 */
int dwunw_module_open(struct dwunw *dw, uint32_t *module, const char *path, const uint8_t *build_id,
		      size_t build_id_len);

/* Path of @module as it was added; valid until dwunw_free().  NULL for DWUNW_NO_MODULE. */
const char *dwunw_module_path(const struct dwunw *dw, uint32_t module);

/* One executable mapping, as /proc/PID/maps has it. */
struct dwunw_mapping {
	uint64_t start;	      /* first address */
	uint64_t end;	      /* first address after it */
	uint64_t file_offset; /* bytes into the file, of the page at start */
	uint32_t module;      /* number of the module, or DWUNW_NO_MODULE */
};

/*
 * Make an epoch of an address space from its executable mappings (in any order; where two overlap,
 * the later in the array wins).  @maps is copied.  @dw must outlive the space.
 * Returns 0, -ENOMEM or -EINVAL (a mapping that ends before it starts, or an unknown module).
 */
int dwunw_space_new(struct dwunw_space **out, struct dwunw *dw, const struct dwunw_mapping *maps,
		    size_t nr_maps);

/* Release @space; NULL is allowed.  The modules stay. */
void dwunw_space_free(struct dwunw_space *space);

/* The registers from which an unwinding starts. */
struct dwunw_regset {
	uint64_t reg[DWUNW_MAX_ARCH_REGS]; /* by DWARF number */
	uint32_t known;			   /* bit r: reg[r] holds a value */
	uint32_t flags;			   /* enum dwunw_event_flag, of the event */
};

/* Fill @rs from the @nr_regs registers of an event, in DWARF order, all known.  @event_flags are
 * the flags of the event.  Returns 0 or DWUNW_ERR_ARCH when @nr_regs is not that of x86-64. */
int dwunw_regset_prepare(struct dwunw_regset *rs, const uint64_t *regs, size_t nr_regs,
			 uint32_t event_flags);

/* The bytes of a stack at hand: @len bytes that stood at @addr and above. */
struct dwunw_stack {
	uint64_t addr;
	const uint8_t *bytes;
	size_t len;
};

enum dwunw_frame_flag {
	/* pc is a return address: what was running is the instruction before it */
	DWUNW_FRAME_FLAG_RETURN = 1 << 0,
	/* the frame of a signal trampoline; its caller was interrupted at its pc */
	DWUNW_FRAME_FLAG_SIGNAL = 1 << 1,
	/* set on the last frame found of a stack that is not complete */
	DWUNW_FRAME_FLAG_PARTIAL = 1 << 2,
};

struct dwunw_frame {
	uint64_t pc;   /* address in the process */
	uint64_t addr; /* the same place as the module's ELF file counts it (pc - bias); pc if none
			*/
	uint32_t module; /* or DWUNW_NO_MODULE */
	uint32_t flags;	 /* enum dwunw_frame_flag */
};

/* Why an unwinding stopped.  Only DWUNW_STATUS_ENDED is a complete stack. */
enum dwunw_status {
	DWUNW_STATUS_ENDED,	 /* return address undefined, or zero: the outermost frame */
	DWUNW_STATUS_TRUNCATED,	 /* needed bytes above those at hand */
	DWUNW_STATUS_NO_CFI,	 /* no module at a pc, or no call frame information for it */
	DWUNW_STATUS_BAD_MEMORY, /* needed an address that is not in the stack, or the CFA went back
				  */
	DWUNW_STATUS_FRAME_LIMIT, /* more frames than the caller has room for */
	DWUNW_STATUS_NR,
};

/* Static text: "complete", "stack bytes end", ... */
const char *dwunw_status_text(enum dwunw_status status);

/*
 * Unwind from @regs over @stack.  frames[0] is where the registers point, then its caller, and so
 * on outwards.  *status tells why it ended there.
 * Returns the number of frames (1 up to @max_frames), -ENOMEM, or -EINVAL when @max_frames is 0.
 */
int dwunw_capture(struct dwunw_space *space, const struct dwunw_regset *regs,
		  const struct dwunw_stack *stack, struct dwunw_frame *frames, size_t max_frames,
		  enum dwunw_status *status);

/* A function that the compiler inlined where the place is.  Strings are valid until dwunw_free().
 */
struct dwunw_inline {
	const char *function; /* demangled; NULL when not known */
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

/* What stood in the way of better names in a module. */
enum dwunw_note {
	/* it has debug information that cannot be read: damaged, or compressed in an unknown way */
	DWUNW_NOTE_UNREADABLE = 1 << 0,
	/* the file to which dwz moved a part of the debug information was not found */
	DWUNW_NOTE_NO_ALT = 1 << 1,
	/* inlined calls are in .dwo files, which are not read */
	DWUNW_NOTE_SPLIT = 1 << 2,
	/* its .gnu_debugdata, the symbols of a stripped file, cannot be read */
	DWUNW_NOTE_BAD_MINIDEBUG = 1 << 3,
};

/* Bits of enum dwunw_note for @module, by the names that were asked for so far; 0 for a module that
 * is not known. */
uint32_t dwunw_module_notes(const struct dwunw *dw, uint32_t module);

/* Static text for one bit: "debug information that cannot be read", ... */
const char *dwunw_note_text(enum dwunw_note note);

#endif
