/* filesearch.h - look for a file with debug information: one candidate after the other */
#ifndef DWUNW_FILESEARCH_H
#define DWUNW_FILESEARCH_H

#include <stdbool.h>

#include "unwind/module/debugfile.h"

struct dwunw_file_search {
	struct dwunw_dwarf_file *out; /* out->dwarf tells whether it was found */
	/* The first file that is the right one, but has a symbol table only; NULL: not wanted. */
	struct dwunw_dwarf_file *symbols;
	const struct dwunw_debug_dirs *dirs;
	struct dwunw_file_key key;
	bool unreadable; /* a file was the right one, but could not be read */
};

/* Each of these does nothing once a file was found, and returns 0 or -ENOMEM. */

/* Try the path that printf() would make of the arguments. */
__attribute__((format(printf, 2, 3))) int dwunw_file_try(struct dwunw_file_search *s,
							 const char *format, ...);

/* Try the path of the build-id below each directory. */
int dwunw_file_try_build_id(struct dwunw_file_search *s);

/* Have it fetched, by the build-id. */
int dwunw_file_try_fetch(struct dwunw_file_search *s);

#endif
