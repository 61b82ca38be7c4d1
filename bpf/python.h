/* python.h - what is sent of CPython's frames, and where they are in a process
 *
 * A frame is told by its code object, which has name, file and lines, and by how far it has come in
 * it.  The recorder reads a code object once.  Another may get its address: so a digest of what it
 * holds goes along, and what has another digest is another object.
 */
#ifndef MLEAK_BPF_PYTHON_H
#define MLEAK_BPF_PYTHON_H

#include "bpf/event.h"

#define EVENT_PYTHON_FRAMES 128 /* most that are sent, the innermost */

/* Where in a process what is; offsets are bytes, words have 8.  All 0: there is no interpreter. */
struct event_python {
	__u64 current;	    /* address of the pointer to the state of the thread that interprets */
	__u64 code_type;    /* address of PyCode_Type */
	__u32 version;	    /* as PY_VERSION_HEX >> 16: 0x030b */
	__u32 program;	    /* of a library: preload_process.program */
	__u16 state_thread; /* in that state: pthread_self() of the thread */
	__u16 state_frame;  /* the pointer to a struct that has, */
	__u16 cframe_frame; /* here, the pointer to the innermost frame */
	__u8 frame_code, frame_previous, frame_instr, frame_kind; /* words of a frame */
	__u8 kind_shift; /* in frame_kind, a byte: not 0 in the outermost of its evaluation */
	__u8 code_line, code_file, code_name, code_lines; /* words of a code object */
	__u8 text, wide_text; /* in a string: its characters, if they are ASCII, and if not */
	__u8 first_line;      /* in a code object: its first line, 4 bytes */
	__u16 code_start;     /* in a code object: its instructions */
};

/* What is sent of a frame, the innermost first. */
struct event_frame {
	__u64 code;   /* address of the code object; and EVENT_FRAME_ENTRY */
	__u32 at;     /* bytes of instructions before the one executed last, and 2; 0: none was */
	__u32 digest; /* of the code object, as python_digest() has it */
};

/* Of event_frame.code: of the Python frames that one call of the evaluation has, the outermost. */
#define EVENT_FRAME_ENTRY (1ull << 63)

/* Of event_frames.flags. */
enum {
	EVENT_FRAMES_CUT = 1,	 /* there are more callers */
	EVENT_FRAMES_BROKEN = 2, /* the callers could not be read */
	EVENT_FRAMES_NONE = 4,	 /* the thread does not interpret now */
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
	__u32 lines_len; /* UINT32_MAX: it is too long, and the recorder has to read it */
	struct python_text name, file;
	__u8 name_bytes[EVENT_CODE_NAME], file_bytes[EVENT_CODE_FILE];
	__u8 lines[EVENT_CODE_LINES + EVENT_LINE]; /* lines_len of them */
};

/* On the way from frame to frame: what was read last. */
struct python_walk {
	__u64 frame;	      /* the next one's address; 0: there is none */
	__u64 words[16];      /* of a frame */
	__u64 code[32];	      /* of a code object */
	__u64 part[4];	      /* of what that points to */
	__u64 file, file_mix; /* of the frame before */
};

#define PYTHON_FRAME_BYTES 72  /* of a frame that are read, */
#define PYTHON_CODE_BYTES  152 /* and of a code object */
#define PYTHON_WORD_MAX	   31  /* of a code object; of a frame the half */

/* Of a string's state: interned:2 kind:3 compact:1 ascii:1. */
#define PYTHON_COMPACT	   (1u << 5)
#define PYTHON_ASCII	   (1u << 6)
#define PYTHON_KIND(state) ((state) >> 2 & 7)

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
