/* code_read.h - code objects of CPython into functions of a trace */
#ifndef RECORD_CODE_READ_H
#define RECORD_CODE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "format/code.h"
#include "record/libpreload/python_record.h"
#include "record/target/target.h"

/*
 * Read the code object at @address of @t.  It is what the process had when it had @digest, and has
 * still when it was read.  Texts and lines of *@code are released with free().  False: it is not
 * there any more, or there is no memory.
 */
bool code_read(struct mlk_code *code, const struct target *t, const struct event_python *py,
	       uint64_t address, uint32_t digest);

/* The parts of a code object that were sent. */
struct code_parts {
	uint32_t version, first_line, lines_len;
	bool no_lines; /* they are not known */
	struct python_text name, file;
	const uint8_t *name_bytes, *file_bytes, *lines;
};

/* Find the parts in @from, @len hostile bytes.  False: they are not there. */
bool code_find_parts(struct code_parts *parts, const struct preload_code *from, uint32_t len);

/* The same of a code object that was sent as @parts. */
bool code_take(struct mlk_code *code, const struct code_parts *parts);

#endif
