/* code_ranges.h - where code is in all processes of a recording: what decides which words of stacks
 * are kept */
#ifndef RECORD_CODE_RANGES_H
#define RECORD_CODE_RANGES_H

#include "record/module/trace_out.h"
#include "record/process/process.h"

/* Ranges that the writer was told, ascending, apart from each other. */
struct code_ranges {
	struct mlk_mapping *v;
	size_t nr;
};

/* Tell j->writer what is executable in the @nr processes of @all: now, and before where events of
 * then may still come.  Nothing is told again that has not changed.  Errors go to j->err. */
void code_ranges_update(struct code_ranges *c, struct trace_out *j, struct process *const *all,
			size_t nr);

void code_ranges_release(struct code_ranges *c);

#endif
