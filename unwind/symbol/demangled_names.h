/* demangled_names.h - demangled names, each made once */
#ifndef DWUNW_STRINGS_H
#define DWUNW_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/addr_index.h"

/* Zeroes make an empty one. */
struct dwunw_strings {
	struct dwunw_addr_index index; /* from the address of the mangled name */
	char **name;
	uint32_t nr, room;
	bool mangled; /* they are not to be demangled after all */
};

/* What the @len characters at @raw stand for; they must not change, and always be asked for with
 * the same length.  Returns a string valid until dwunw_strings_release(), or NULL when out of
 * memory. */
const char *dwunw_strings_demangled(struct dwunw_strings *strings, const char *raw, size_t len);

void dwunw_strings_release(struct dwunw_strings *strings);

#endif
