/* python.h - what is sent of CPython's, PHP's and Ruby's frames, and where they are in a process
 *
 * A frame is told by its code object, which has name, file and lines, and by how far it has come in
 * it.  The recorder reads a code object once.  Another may get its address: so a digest of what it
 * holds goes along, and what has another digest is another object.
 */
#ifndef MLEAK_BPF_PYTHON_H
#define MLEAK_BPF_PYTHON_H

#include "bpf/event.h"

#define EVENT_PYTHON_FRAMES 128 /* most that are sent, the innermost */

/* How event_python.current leads to the pointer to the state of the thread that interprets. */
enum python_current {
	PYTHON_NOWHERE = 0,
	PYTHON_GLOBAL,	/* it is the pointer's address: one for all threads */
	PYTHON_THREAD,	/* it is how far the pointer is from the thread's control block */
	PYTHON_SLOT,	/* it is the address of a word that tells that */
	PYTHON_DYNAMIC, /* it is the address of a tls_index, of what __tls_get_addr() returns */
};

/* What tells frames that one call of the evaluation has from those of another. */
enum python_shape {
	PYTHON_OBJECTS, /* up to 3.10: a call has one */
	PYTHON_FLAGGED, /* 3.11: in the outermost of a call, a byte is not 0 */
	PYTHON_SHIMS,	/* since 3.12: a frame that is none, PYTHON_OWNER_SHIM, is behind the
			   outermost */
	PYTHON_IS_PHP,	/* they are PHP's: see php_walk.h */
	PYTHON_IS_RUBY, /* or Ruby's: see ruby_walk.h */
};

/* Of event_python.version: the rest is that of PHP, 0x0802, or of Ruby, 0x0301. */
#define PYTHON_PHP_VERSION  (1u << 31)
#define PYTHON_RUBY_VERSION (1u << 30)

#define PYTHON_OWNER_SHIM 3 /* or above: owned by the machine's stack, or by the interpreter */
#define PYTHON_DIRECT	  0xffffu /* as cframe_frame: state_frame is the innermost frame itself */

/* Where in a process what is; offsets are bytes, words have 8.  All 0: there is no interpreter. */
struct event_python {
	__u64 current;	 /* as current_kind, an enum python_current, has it */
	__u64 code_type; /* address of PyCode_Type; of PHP that of zend_ce_generator */
	__u64 key;	 /* address of the Py_tss_t by which each thread keeps its own state; of PHP
			    that of executor_globals.opline_before_exception */
	__u32 version;	 /* as PY_VERSION_HEX >> 16: 0x030b */
	__u32 program;	 /* of a library: preload_process.program */
	__s32 current_plus; /* added to where current leads */
	__u16 state_thread; /* in that state: pthread_self() of the thread */
	__u16 state_frame;  /* the pointer to a struct that has, */
	__u16 cframe_frame; /* here, the pointer to the innermost frame; or PYTHON_DIRECT */
	__u16 frame_more;   /* in a frame, what is read as its word PYTHON_MORE; 0: nothing */
	__u16 code_start;   /* in a code object: its instructions */
	__u16 specific;	    /* from the thread's control block to the addresses of the blocks that
			       have the values of keys; 0: not known, and so is none kept */
	__u8 current_kind, shape;
	__u8 frame_code, frame_previous, frame_instr, frame_kind; /* words of a frame */
	__u8 kind_shift; /* in frame_kind, the byte that the shape is about */
	__u8 instr_unit; /* frame_instr is an int, the number of the last instruction, in these
			    units; 0: it is the instruction's address */
	__u8 code_line, code_file, code_name, code_lines; /* words of a code object */
	__u8 text, wide_text; /* in a string: its characters, if they are ASCII, and if not */
	__u8 text_shift;      /* in its state: the first bit of their width */
	__u8 first_line;      /* in a code object: its first line, 4 bytes */
	__u8 loaded;	      /* 1: it is in a library that the program may unload */
	__u8 unused[7];
};

/* What is sent of a frame, the innermost first. */
struct event_frame {
	__u64 code; /* address of the code object; and EVENT_FRAME_ENTRY */
	__u32 at; /* bytes of instructions before the one executed last, and 2; 0: none was; of PHP
		     and Ruby its line, and 2 */
	__u32 digest; /* of the code object, as python_digest() has it */
};

/* Of event_frame.code: of the Python frames that one call of the evaluation has, the outermost.  If
 * there is no address beside it, the call has no frame, or not any more. */
#define EVENT_FRAME_ENTRY (1ull << 63)

/* Of event_frames.flags. */
enum {
	EVENT_FRAMES_CUT = 1,	 /* there are more callers */
	EVENT_FRAMES_BROKEN = 2, /* the callers could not be read */
	EVENT_FRAMES_NONE = 4,	 /* the thread executes no Python */
};

/* EVENT_FRAMES: those of the allocation that the same thread sends next, at the same stack
 * pointer.  Behind it are nr struct event_frame. */
struct event_frames {
	union event_head head;
	__u64 id; /* process and thread */
	__u64 sp;
	__u32 nr, flags;
	__u64 unused;
};

/* As the length of lines: they are too long, or cannot be read.  None at all is another thing. */
#define PYTHON_NO_LINES 0xffffffffu

/* A string as the interpreter has it. */
struct python_text {
	__u32 len;   /* characters, of */
	__u32 width; /* so many bytes each: 1, 2 or 4; 0: it cannot be read */
};

#define EVENT_CODE_NAME	 256  /* bytes of a name, */
#define EVENT_CODE_FILE	 512  /* of a path, */
#define EVENT_CODE_LINES 8192 /* and of lines, that probes send; of longer ones nothing */

/* EVENT_CODE of the probes: a code object as it was when it was met first. */
struct event_code_sent {
	union event_head head;
	__u64 id, code; /* the process; the object's address */
	__u32 digest, first_line, version;
	__u32 lines_len; /* PYTHON_NO_LINES: it is too long, and the recorder has to read it */
	struct python_text name, file;
	__u8 name_bytes[EVENT_CODE_NAME], file_bytes[EVENT_CODE_FILE];
	__u8 lines[EVENT_CODE_LINES + EVENT_LINE]; /* lines_len of them; of PHP the class */
};

/* On the way from frame to frame: what was read last. */
struct python_walk {
	__u64 frame;	      /* the next one's address; 0: there is none */
	__u64 words[16];      /* of a frame */
	__u64 code[32];	      /* of a code object */
	__u64 part[4];	      /* of what that points to */
	__u64 file, file_mix; /* of the frame before */
	/* Of PHP, generators that delegate to others: the outermost, the one whose frame comes
	 * next, and the frame of their caller.  0: none do.  Of Ruby, outer is the end of the
	 * frames. */
	__u64 leaf, inner, outer;
};

#define PYTHON_FRAME_BYTES 72  /* of a frame that are read, */
#define PYTHON_CODE_BYTES  152 /* and of a code object */
#define PYTHON_WORD_MAX	   31  /* of a code object; of a frame the half */
#define PYTHON_MORE	   9   /* the word of a frame that is read on its own */

/* Of a string's state, moved down by text_shift: kind:3 compact:1 ascii:1. */
#define PYTHON_KIND    7u /* bytes of a character */
#define PYTHON_COMPACT (1u << 3)
#define PYTHON_ASCII   (1u << 4)

/* These bits of @word, which has the state. */
static inline __u32 python_text_state(const struct event_python *py, __u64 word)
{
	return (__u32)word >> (py->text_shift & 31);
}

/* Is @addr one of a program? */
static inline int python_is_address(__u64 addr)
{
	return addr >= 4096 && addr < 1ull << 47 && !(addr & 7);
}

/* A digest of what @sum is of, and of @word. */
static inline __u64 python_mix(__u64 sum, __u64 word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
	return sum ^ sum >> 29;
}

#endif
