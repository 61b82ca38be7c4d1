/* cxx_operators.h - whose are the C++ operators that an allocator's object defines?
 *
 * An allocator's own operator new does the work by itself. libstdc++'s, which is beside malloc in a
 * statically linked program, calls malloc: a probe on it would show nothing more, and the program
 * would be aborted by an exception that passes it.
 */
#ifndef RECORD_CXX_OPERATORS_H
#define RECORD_CXX_OPERATORS_H

#include <stdbool.h>

#include "record/module/elffile.h"

/* Take those operators out of @found (of @elf, as wanted[] has them) that call what else is found
 * there.  Returns true if these are all. */
bool cxx_operators_leave(Elf *elf, struct elf_function *found);

#endif
