/* ruby_find.h - the interpreter of Ruby in a process */
#ifndef RECORD_RUBY_FIND_H
#define RECORD_RUBY_FIND_H

#include "record/interpreter/interpreter_place.h"

extern const struct interpreter_kind ruby_kind;

#endif
