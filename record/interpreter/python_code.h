/* python_code.h - what the machine code of an interpreter's functions tells */
#ifndef RECORD_PYTHON_CODE_H
#define RECORD_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "record/interpreter/interpreter_place.h"

/*
 * The version that Py_GetVersion(), which is @function of @elf, puts into its answer: "3.8.18".
 * Interpreters before 3.11 have no other symbol that tells it.  PY_VERSION_HEX, without what is
 * behind the third number; 0: it is not found.
 */
uint32_t python_code_version(Elf *elf, const struct elf_place *function);

/*
 * Where _PyThreadState_GetCurrent(), which is @function of @elf, has its thread-local variable,
 * into current, current_kind and current_plus of *@at.  The file was moved by @bias.  False: the
 * code is not of the kind that is known.
 */
bool python_code_current(struct event_python *at, Elf *elf, const struct elf_place *function,
			 uint64_t bias);

#endif
