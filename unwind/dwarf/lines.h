/* lines.h - function, source file and line of an address, by the debug information */
#ifndef DWUNW_LINES_H
#define DWUNW_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/dwarf/scopes.h"

struct dwunw_lines;

/* A place in the source.  Strings are valid as long as the Dwarf, and as it has them. */
struct dwunw_line {
	const char *function; /* mangled, if it has such a name; NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;	      /* 0: not known */
};

/* Where in the source an address comes from. */
struct dwunw_source {
	bool split;	/* functions and inlined calls are in a .dwo file, which is not read */
	bool starved;	/* there was too little memory to read all of it */
	uint64_t start; /* of the function; 0 if that is not known */
	/* Innermost first: where the address is, then where that function was called that was
	 * inlined, and so on.  The last is in the function itself. */
	struct dwunw_line place[DWUNW_MAX_INLINED + 1];
	size_t nr; /* from 1 */
};

/* @dwarf is borrowed until dwunw_lines_free().  Returns 0, or -ENOMEM with *out NULL. */
int dwunw_lines_new(struct dwunw_lines **out, Dwarf *dwarf);
void dwunw_lines_free(struct dwunw_lines *lines);

/* Where @addr, as the file counts it, comes from.  Returns 0 or -ENOMEM. */
int dwunw_lines_find(struct dwunw_lines *lines, uint64_t addr, struct dwunw_source *out);

#endif
