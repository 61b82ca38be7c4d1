/* code.h - interpreted functions, the interpreters, and frames of such functions */
#ifndef MLK_CODE_H
#define MLK_CODE_H

#include "format/trace.h"

/* What interprets a program. */
enum mlk_language {
	MLK_LANGUAGE_PYTHON = 1, /* CPython */
	MLK_LANGUAGE_PHP = 2,
	MLK_LANGUAGE_RUBY = 3,
};

/* Static text: "Python", "PHP", "Ruby"; "an interpreter" of one that is not known. */
const char *mlk_language_text(uint32_t language);

/* How lines are told by the bytes of a function. */
enum mlk_line_table {
	MLK_LINES_NONE = 0,
	MLK_LINES_CPYTHON_311 = 1, /* co_linetable from CPython 3.11 on */
	MLK_LINES_CPYTHON_310 = 2, /* co_linetable of 3.10 */
	MLK_LINES_CPYTHON_38 = 3,  /* co_lnotab up to 3.9 */
	MLK_LINES_PLACE = 4,	   /* no bytes: a frame's place is its line, and 2 */
};

/* A function of an interpreted program. */
struct mlk_code {
	uint32_t number;     /* in this trace, from 1 */
	uint32_t tgid;	     /* the process in which it was met first */
	uint32_t language;   /* enum mlk_language */
	uint32_t first_line; /* 0: not known */
	uint32_t line_table; /* enum mlk_line_table: what lines is */
	uint32_t lines_len;
	const uint8_t *lines;
	const char *name, *file; /* UTF-8, without control characters */
};

#define MLK_MAX_LINES (1u << 20) /* bytes of mlk_code.lines */

/* What became of an interpreter's frames, as counted. */
enum mlk_interpreted {
	MLK_INTERPRETED_KNOWN,	 /* allocations with frames */
	MLK_INTERPRETED_NONE,	 /* without: the thread did not run the interpreter then */
	MLK_INTERPRETED_CUT,	 /* of the first: there are more callers than were copied */
	MLK_INTERPRETED_BROKEN,	 /* of the first: the chain could not be followed further */
	MLK_INTERPRETED_UNNAMED, /* frames whose function was gone before it was read */
	MLK_INTERPRETED_NR,
};

/* Static text: "allocations with frames", ... */
const char *mlk_interpreted_text(enum mlk_interpreted count);

/* An interpreter in a process. */
struct mlk_interpreter {
	uint32_t tgid;
	uint32_t language;   /* enum mlk_language */
	uint64_t time_ns;    /* CLOCK_MONOTONIC: when this was so */
	uint64_t known;	     /* 1: its frames are read; 0: they are not, as why says */
	const char *version; /* "3.11.2", "" when not known */
	const char *why;     /* for people; "" if known */
	/* Where it interprets: addresses of machine code, ascending. */
	uint32_t nr_ranges;
	struct mlk_code_range {
		uint64_t start, end;
	} ranges[4];
	uint64_t counts[MLK_INTERPRETED_NR]; /* since the recording began */
};

#define MLK_MAX_CODE_FRAMES 1024 /* of an event */

/* Bits of mlk_code_frame.at. */
enum {
	/* The machine code that interprets this frame was not called by such that interprets its
	 * caller, but by other code. */
	MLK_CODE_FRAME_ENTRY = 1,
	MLK_CODE_FRAME_CUT = 2, /* it has callers that are not known */
	MLK_CODE_FRAME_SHIFT = 2,
};

/* A frame of an interpreted function. */
struct mlk_code_frame {
	uint32_t code; /* number of the function; 0: it is not known */
	/* Above bits of MLK_CODE_FRAME_SHIFT: 1 more than how many bytes of its code come before
	 * the instruction; 0: none was executed. */
	uint32_t at;
};

#endif
