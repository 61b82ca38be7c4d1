/* names.h - names of places in one module, each looked up once */
#ifndef DWUNW_NAMES_H
#define DWUNW_NAMES_H

#include <stdint.h>

#include "unwind/dwunw.h"

struct dwunw_debug_dirs;
struct dwunw_module;
struct dwunw_names;

/* What is known of an address; strings and inlined calls are valid until dwunw_names_free(). */
struct dwunw_name {
	const char *function; /* demangled, or NULL */
	uint64_t start;	      /* address of the function */
	const char *file;     /* or NULL */
	uint32_t line;	      /* or 0 */
	uint32_t nr_inlined;
	struct dwunw_inline *inlined; /* innermost first */
};

/* Returns 0 with the names of @module, which is borrowed, in *out; or -ENOMEM and NULL. */
int dwunw_names_new(struct dwunw_names **out, const struct dwunw_module *module,
		    const struct dwunw_debug_dirs *dirs);
void dwunw_names_free(struct dwunw_names *names);

/* The name of @addr, as the file counts it; *name is valid until the next call.  Returns 0 or
 * -ENOMEM. */
int dwunw_names_find(struct dwunw_names *names, uint64_t addr, const struct dwunw_name **name);

/* Bits of enum dwunw_note, by the names requested so far. */
uint32_t dwunw_names_notes(const struct dwunw_names *names);

#endif
