/* dwunw.h - libdwunw: registers + stack bytes + mappings in, frames and names out
 *
 * An unwinder for stacks that were saved earlier, perhaps on another machine.  It never prints; it
 * knows the program only through the ELF images it is given.  Only the stack reader, the last part
 * of this header, touches another process.
 *
 * Errors are negative: -ENOMEM, -EINVAL, -ENOENT or one of enum dwunw_error; dwunw_strerror() names
 * them. Nothing here is safe for use by two threads at once on the same struct dwunw.
 */
#ifndef DWUNW_H
#define DWUNW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dwunw_event.h"

struct dwunw;	      /* opaque: modules, stacks, and all that was learned of them */
struct dwunw_space;   /* opaque: one epoch of one address space (which module is mapped where) */
struct dwunw_history; /* opaque: the last stack of one thread */

enum dwunw_error {
	DWUNW_ERR_ELF = -6001,	/* the image is no ELF file that can be read */
	DWUNW_ERR_ARCH = -6002, /* the image or the registers belong to another architecture */
	DWUNW_ERR_ATTACH_DENIED = -6003, /* the kernel does not let us read the process */
	DWUNW_ERR_GONE = -6004,		 /* the process or the thread has ended */
};

#ifdef __cplusplus
extern "C" {
#endif

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

/* Look for programs, libraries and the debug files next to them below @dir, as in the root
 * directory of another system, before their own paths; a file with another build-id is never used.
 * @dir is copied, and replaces an earlier one.  Returns 0 or -ENOMEM. */
int dwunw_symfs_set(struct dwunw *dw, const char *dir);

/* Fetches the file with debug information whose GNU build-id is the @len bytes at @build_id, be it
 * over the network.  Returns its path, to be released with free(), or NULL when there is none. */
typedef char *dwunw_debug_fetch(void *arg, const uint8_t *build_id, size_t len);

/* Have @fetch, called with @arg, asked for debug information that is found nowhere else; NULL: ask
 * nobody, as at first.  The library itself never uses the network. */
void dwunw_debug_fetch_set(struct dwunw *dw, dwunw_debug_fetch *fetch, void *arg);

#define DWUNW_NO_MODULE UINT32_MAX

/* Numbers from this one to DWUNW_NO_MODULE - 1 are the caller's own, for files that the unwinder
 * does not have: frames in their mappings get the number as it is, and as addr the offset into the
 * file. */
#define DWUNW_FOREIGN_MODULE ((uint32_t)1 << 31)

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
 * @path: absolute; copied; looked for below the directory of dwunw_symfs_set() first.
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
	uint32_t module;      /* number of the module, a foreign one, or DWUNW_NO_MODULE */
};

/*
 * Make an epoch of an address space from its executable mappings (in any order; where two overlap,
 * the later in the array wins).  @maps is copied.  @dw must outlive the space, which
 * keeps what was learned of its code: make one for each layout, not for each stack.
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
	/* it was found by bytes that are older than the event, as all frames after it */
	DWUNW_FRAME_FLAG_STALE = 1 << 3,
	/* it was found by a guess, or through a frame that was: it may be no caller at all */
	DWUNW_FRAME_FLAG_GUESSED = 1 << 4,
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
	DWUNW_STATUS_NO_CFI,	 /* no module at a pc, or no call frame information for it; what
				  * follows that frame, if anything, is guessed */
	DWUNW_STATUS_BAD_MEMORY, /* needed an address that is not in the stack, or the CFA went back
				  */
	DWUNW_STATUS_FRAME_LIMIT, /* more frames than the caller has room for */
	DWUNW_STATUS_STALE, /* came to the outermost frame, but by bytes older than the event */
	DWUNW_STATUS_NR,
};

/* Static text: "complete", "stack bytes end", ... */
const char *dwunw_status_text(enum dwunw_status status);

/* The most frames a stack may have. */
#define DWUNW_MAX_FRAMES 16384

enum dwunw_sample_flag {
	/* Where code has no call frame information, guess its caller: by the frame pointer; else by
	 * the first word on the stack that looks like a return address, of which the code before it
	 * must be in the module's image.  Such frames are marked, and the stack is not complete. */
	DWUNW_SAMPLE_GUESS = 1 << 0,
	/* Keep all registers from the first frame on, and take nothing over.  The result is the
	 * same but for nr_taken_over, only slower: for tests and measurements. */
	DWUNW_SAMPLE_FULL = 1 << 1,
};

/* What to unwind.  All is borrowed for the call. */
struct dwunw_sample {
	const struct dwunw_regset *regs;
	const struct dwunw_stack *stack;
	/* The lowest address whose byte is older than the event, as all above it, such as a picture
	 * of the stack that was taken earlier; UINT64_MAX if there is none. */
	uint64_t stale_from;
	/* Of the thread and of no other, or NULL.  It is changed to hold this stack. */
	struct dwunw_history *history;
	/* The lowest address from which on all bytes up to the stack's end are as they were in the
	 * sample before this one with the same history; UINT64_MAX if not known.  Not looked at if
	 * the stack's end is another one, or without a history. */
	uint64_t unchanged_from;
	uint32_t flags; /* enum dwunw_sample_flag */
};

struct dwunw_result {
	uint32_t id; /* of the stack: equal for equal frames and status, and only then; never 0 */
	enum dwunw_status status;
	uint32_t nr_frames;
	uint32_t nr_taken_over; /* the outer ones of these, which were found in the history */
};

/*
 * Unwind @sample.  frames[0] is where the registers point, then its caller, and so on outwards.
 *
 * @frames: room for @max_frames frames, where the unwinding stops; or NULL when only the id is
 *          wanted, and then @max_frames may be 0 for no limit but DWUNW_MAX_FRAMES.
 *
 * *result is set only on success.  Once the code and the stacks are known, nothing is allocated.
 * Returns 0, -ENOMEM, or -EINVAL when @max_frames is 0 with @frames.
 */
int dwunw_capture(struct dwunw_space *space, const struct dwunw_sample *sample,
		  struct dwunw_frame *frames, size_t max_frames, struct dwunw_result *result);

/* New history, without a stack; to be kept for a thread from one of its samples to the next, in
 * whichever space.  Memory as of its deepest stack, 32 bytes a frame.  *out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int dwunw_history_new(struct dwunw_history **out);

/* Release @history; NULL is allowed. */
void dwunw_history_free(struct dwunw_history *history);

/*
 * All stacks that were found are kept until dwunw_free(), as a tree: what the callers have in
 * common is there once.  The id of a stack is that of its innermost frame's node, whose parent is
 * the id of its caller's stack.  An id below must be one that was given out.
 */

/* The frames of stack @id, innermost first, at most @max_frames of them.  Returns how many were
 * written. */
size_t dwunw_stack_frames(const struct dwunw *dw, uint32_t id, struct dwunw_frame *frames,
			  size_t max_frames);

/* The stack of the caller of stack @id; without frames if @id has one frame, and 0 if it has none.
 */
uint32_t dwunw_stack_parent(const struct dwunw *dw, uint32_t id);

/* Why the unwinding of stack @id stopped. */
enum dwunw_status dwunw_stack_status(const struct dwunw *dw, uint32_t id);

/*
 * Find the id of the stack of these @nr frames (innermost first, 0 to DWUNW_MAX_FRAMES) and
 * @status, or add it.  DWUNW_FRAME_FLAG_PARTIAL is ignored: it follows from the status.
 * Returns 0, -ENOMEM, or -EINVAL for a status that there is not.
 */
int dwunw_stack_intern(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr,
		       enum dwunw_status status, uint32_t *id);

/* All ids given out are below this number. */
uint32_t dwunw_stack_limit(const struct dwunw *dw);

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

/*
 * The stack reader: registers and stacks of the threads of a running process, as dwunw_capture()
 * takes them.
 *
 * A thread is stopped by ptrace for the time in which its registers and its stack are copied, some
 * ten microseconds unless the stack is deep, and goes on as if nothing had been; one that was
 * stopped (SIGSTOP) stays so.  A thread that waits in a system call that would fail with EINTR by
 * that (see DWUNW_READER_ALWAYS_STOP) is read without being stopped.
 *
 * The caller's process gets a SIGCHLD for each stop, as ptrace has it.  A thread of the caller that
 * waits at that time for any child, or for the target if that is its child, may be given the stop
 * (WIFSTOPPED), which is to be ignored.
 */
struct dwunw_stack_reader; /* opaque: one process; one thread of the caller at a time */

enum dwunw_reader_flag {
	/* Never stop a thread, never use ptrace.  Only threads that wait in the kernel can be read,
	 * and only some of their registers. */
	DWUNW_READER_NO_STOP = 1 << 0,
	/* Stop also threads in system calls that fail with EINTR when a thread is stopped in them:
	 * epoll_wait, sigtimedwait, semop, io_getevents, io_uring_enter, and those on sockets,
	 * which do so if they have a timeout.  All registers are known then. */
	DWUNW_READER_ALWAYS_STOP = 1 << 1,
};

/* Why the kernel does not let us read a process. */
enum dwunw_denied {
	DWUNW_DENIED_NOT,	    /* nothing was denied */
	DWUNW_DENIED_OTHER_USER,    /* of another user, and no CAP_SYS_PTRACE */
	DWUNW_DENIED_YAMA,	    /* kernel.yama.ptrace_scope */
	DWUNW_DENIED_TRACED,	    /* under a debugger or another tracer */
	DWUNW_DENIED_NOT_DUMPABLE,  /* prctl(PR_SET_DUMPABLE, 0), or it changed its rights */
	DWUNW_DENIED_KERNEL_THREAD, /* has no memory of its own */
	DWUNW_DENIED_ZOMBIE,	    /* it, or its main thread, has ended and was not waited for */
	DWUNW_DENIED_UNKNOWN,	    /* another security module, seccomp, ... */
	DWUNW_DENIED_NR,
};

/* Static text: "it belongs to another user ...". */
const char *dwunw_denied_text(enum dwunw_denied why);

struct dwunw_stack_reader_opts {
	uint32_t flags;		   /* enum dwunw_reader_flag */
	size_t max_stack;	   /* bytes of a stack to copy at most; 0: 8 MiB */
	uint64_t start_time;	   /* clock ticks since boot, field 22 of /proc/PID/stat: only the
				      process that started then is meant.  0: any */
	enum dwunw_denied *denied; /* set by dwunw_stack_reader_attach(); NULL: not wanted */
};

/*
 * Get ready to read the threads of process @pid; nothing is stopped yet.  There is one reader of a
 * process at a time, in all processes of this machine that see it under the same /proc.
 *
 * @opts: copied; NULL is all zeros.
 *
 * On success *out is released with dwunw_stack_reader_detach(); on failure it is NULL.
 * Returns 0, -ENOMEM, -EINVAL (@pid is not positive, not a process but another's thread, or the
 * caller's own), -EBUSY (there is a reader of it), DWUNW_ERR_ATTACH_DENIED, DWUNW_ERR_GONE (no such
 * process), or the -errno of opening its files in /proc (-EMFILE, ...).
 */
int dwunw_stack_reader_attach(pid_t pid, const struct dwunw_stack_reader_opts *opts,
			      struct dwunw_stack_reader **out);

/*
 * The thread ids of the process: the first @max of them in @tids.
 * Returns their number, which may be more than @max, or DWUNW_ERR_GONE, or another -errno.
 */
int dwunw_stack_reader_threads(struct dwunw_stack_reader *reader, pid_t *tids, size_t max);

enum dwunw_copy_flag {
	/* The thread was not stopped, for it waited in the kernel.  Only its stack pointer, its pc
	 * and the arguments of its system call are in regs.known. */
	DWUNW_COPY_NOT_STOPPED = 1 << 0,
	/* The thread ran while it was copied: what was unwound from it is to be marked partial. */
	DWUNW_COPY_TORN = 1 << 1,
};

/* One thread at one moment. */
struct dwunw_stack_copy {
	pid_t tid;
	uint32_t flags;		  /* enum dwunw_copy_flag */
	struct dwunw_regset regs; /* flags: what of enum dwunw_event_flag is true of the stack */
	struct dwunw_stack stack; /* from the stack pointer up.  The bytes belong to the reader and
				     are valid until the next call with it */
	uint64_t stopped_ns;	  /* at most so long was the thread stopped, nanoseconds */
	enum dwunw_denied denied; /* on DWUNW_ERR_ATTACH_DENIED: why */
};

/*
 * Copy the registers and the stack of thread @tid, to the end of its mapping (of the main thread:
 * to where main's arguments begin) or opts.max_stack.
 *
 * Returns 0, -ENOMEM, -EAGAIN (it runs and is not to be stopped, or no thread could be made to stop
 * it), -ETIMEDOUT (it did not stop in 200 ms and is not to be read otherwise), DWUNW_ERR_GONE,
 * DWUNW_ERR_ATTACH_DENIED (a debugger came after attach), or DWUNW_ERR_ARCH (it is in 32-bit mode).
 * In any case *copy is filled; on failure regs and stack are empty.
 */
int dwunw_stack_reader_read(struct dwunw_stack_reader *reader, pid_t tid,
			    struct dwunw_stack_copy *copy);

/*
 * Read all threads, each once: @visit is called with @arg, the result of reading a thread and its
 * copy; what it returns other than 0 ends the reading and is returned.  Threads that ended
 * meanwhile are left out. Returns 0, what @visit returned, -ENOMEM, or DWUNW_ERR_GONE when the
 * process has ended.
 */
int dwunw_stack_reader_read_all(struct dwunw_stack_reader *reader,
				int (*visit)(void *arg, int err,
					     const struct dwunw_stack_copy *copy),
				void *arg);

/* Release @reader; NULL is allowed. */
void dwunw_stack_reader_detach(struct dwunw_stack_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
