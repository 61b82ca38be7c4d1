/* php_find.h - the interpreter of PHP in a process */
#ifndef RECORD_PHP_FIND_H
#define RECORD_PHP_FIND_H

#include "record/interpreter/interpreter_place.h"

extern const struct interpreter_kind php_kind;

#endif
