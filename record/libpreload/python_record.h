/* python_record.h - CPython's frames and code objects in a ring */
#ifndef LIBPRELOAD_PYTHON_RECORD_H
#define LIBPRELOAD_PYTHON_RECORD_H

#include "bpf/python.h"
#include "record/libpreload/record.h"

/* EVENT_FRAMES in a ring, before its EVENT_ALLOC. */
struct preload_frames {
	struct preload_record record; /* addr: the stack pointer; size: flags, and above them nr */
	struct event_frame frames[];
};

#define PYTHON_NAME_MAX	 512u	/* characters of a name, */
#define PYTHON_FILE_MAX	 1024u	/* of a path, */
#define PYTHON_LINES_MAX 60000u /* and bytes of lines that are told; of longer ones none are */

/* EVENT_CODE in a ring: what a code object holds.  Behind it are the characters of its name, of its
 * file, and the bytes of its lines, each padded to 8 bytes. */
struct preload_code {
	struct preload_record record; /* addr: of the object; size: digest, and above it the first
					 line */
	struct python_text name, file;
	uint32_t lines_len, version; /* lines_len: or PYTHON_NO_LINES */
};

/* The same as it is handed on: whole, but hostile. */
struct event_code_object {
	union event_head head; /* EVENT_CODE */
	uint64_t id;
	const struct preload_code *code;
	uint32_t len; /* bytes of it with what is behind it */
};

/* Bytes that @len bytes take with what pads them. */
static inline uint32_t python_padded(uint32_t len)
{
	return (len + 7) & ~7u;
}

#endif
