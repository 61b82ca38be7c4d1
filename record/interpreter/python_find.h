/* python_find.h - the interpreter of Python in a process */
#ifndef RECORD_PYTHON_FIND_H
#define RECORD_PYTHON_FIND_H

#include "record/interpreter/interpreter_place.h"

extern const struct interpreter_kind python_kind;

#endif
