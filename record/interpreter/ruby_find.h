/* ruby_find.h - the interpreter of Ruby in a process */
#ifndef RECORD_RUBY_FIND_H
#define RECORD_RUBY_FIND_H

#include <stdbool.h>

#include "record/interpreter/interpreter_place.h"
#include "record/target/target.h"

/* Look at the file that @t has mapped at @m.  False: no interpreter is in it. */
bool ruby_find(struct interpreter_place *place, const struct target *t,
	       const struct mlk_mapping *m);

/* May there be one, by the file's name? */
bool ruby_is_likely(const struct mlk_mapping *m);

#endif
