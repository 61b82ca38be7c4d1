/* python_find.h - the interpreter of Python in a process */
#ifndef RECORD_PYTHON_FIND_H
#define RECORD_PYTHON_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/python.h"
#include "format/code.h"
#include "record/target/target.h"

/* What was found. */
struct python_place {
	struct event_python at; /* all zero: frames cannot be read, as why says */
	char version[32];
	char why[64];
	struct mlk_code_range ranges[4]; /* of code that interprets, ascending */
	uint32_t nr_ranges;
};

/* Look at the file that @t has mapped at @m.  False: no interpreter is in it. */
bool python_find(struct python_place *place, const struct target *t, const struct mlk_mapping *m);

/* May there be one, by the file's name? */
bool python_is_likely(const struct mlk_mapping *m);

#endif
