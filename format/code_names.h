/* code_names.h - names of functions that a process generated, doc/trace-format.md 4.23 */
#ifndef MLK_CODE_NAMES_H
#define MLK_CODE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define MLK_MAX_CODE_NAMES 65536u /* in a chunk */

/* Bits of mlk_code_names.flags. */
enum mlk_code_names_flag {
	MLK_CODE_NAMES_ANEW = 1, /* those of before held until then, and no longer */
};

/* Where names come from. */
enum mlk_code_names_source {
	MLK_CODE_NAMES_PERF_MAP, /* /tmp/perf-PID.map */
	MLK_CODE_NAMES_JITDUMP,	 /* jit-PID.dump */
};

/* A function of generated code: [start, start + len). */
struct mlk_code_name {
	uint64_t start, len;
	uint32_t frame;	  /* bytes below the return address; 0: it keeps a frame pointer, or nothing
			     is known */
	const char *name; /* as the runtime wrote it */
};

/* What was read at a moment.  Of two names for an address the later one holds. */
struct mlk_code_names {
	uint32_t tgid;
	uint64_t time_ns;    /* CLOCK_MONOTONIC */
	uint32_t source;     /* enum mlk_code_names_source */
	uint32_t flags;	     /* enum mlk_code_names_flag */
	uint64_t left_out;   /* bytes of the source that are not in the trace, since its begin */
	const char *problem; /* why; "" if nothing is left out */
	size_t nr;
	const struct mlk_code_name *names; /* borrowed: by the writer for the call, by the reader
					      until the next */
};

#endif
