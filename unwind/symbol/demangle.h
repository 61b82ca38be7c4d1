/* demangle.h - names of functions as their source has them */
#ifndef DWUNW_DEMANGLE_H
#define DWUNW_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/addr_index.h"

/* Longer names are cut, and longer results not used. */
#define DWUNW_MAX_NAME 4096

/* The @len characters at @raw, demangled if they are a name of C++ or Rust, to be freed by the
 * caller; or NULL when out of memory. */
char *dwunw_demangle(const char *raw, size_t len);

/* Zeroes make an empty one. */
struct dwunw_demangled_names {
	struct dwunw_addr_index index; /* from the address of the mangled name */
	char **name;
	uint32_t nr;
	size_t room;
	bool mangled; /* they are not to be demangled after all */
};

/* The demangled form of the @len characters at @raw; they must not change, and always be requested
 * with the same length.  Returns a string valid until dwunw_demangled_names_release(), or NULL when
 * out of memory. */
const char *dwunw_demangled_names_demangled(struct dwunw_demangled_names *strings, const char *raw,
					    size_t len);

/* Free all names. */
void dwunw_demangled_names_release(struct dwunw_demangled_names *strings);

#endif
