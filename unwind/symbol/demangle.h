/* demangle.h - names of functions as their source has them */
#ifndef DWUNW_DEMANGLE_H
#define DWUNW_DEMANGLE_H

#include <stddef.h>

/* Longer names are cut, and longer results not used. */
#define DWUNW_MAX_NAME 4096

/* The @len characters at @raw, demangled if they are a name of C++ or Rust, to be freed by the
 * caller; or NULL when out of memory. */
char *dwunw_demangle(const char *raw, size_t len);

#endif
