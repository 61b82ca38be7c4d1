/* runtime_names.h - which functions are of the C and C++ libraries or an allocator, and so not
 * where a program's author looks
 */
#ifndef REPORT_RUNTIME_NAMES_H
#define REPORT_RUNTIME_NAMES_H

#include <stdbool.h>

/* Is @function, as it is shown, of @module, a path, part of a language's runtime or an allocator?
 * Templates of the standard library are, wherever they were compiled. */
bool is_runtime_function(const char *function, const char *module);

#endif
