/* stack_names_state.h - what names of stacks are made of, for stack_names.c and stack_line.c alone
 */
#ifndef REPORT_STACK_NAMES_STATE_H
#define REPORT_STACK_NAMES_STATE_H

#include "report/view/stack_names.h"

/* What the callers of a function have as their number, and a label of that function. */
struct stack_pair {
	uint32_t callers, label;
};

/* See stack_names.h. */
struct stack_names {
	struct symbols_source source;
	struct symbols_opts opts;
	bool color;
	bool full_recursion;
	size_t columns;
	struct symbols *names;
	struct labels *labels;
	bool *met; /* of each stack: it was wanted, or is that of callers of one that was */
	size_t nr_met;
	/* For stack_names_number(): */
	INTERN_OF(struct stack_pair) pairs;
	uint32_t *numbers; /* of each stack, plus one; 0: it has none yet */
	size_t nr_numbers;
};

/* Write the outermost label of each frame of stack @id to @path.  Returns how many there are. */
size_t stack_names_outer(const struct stack_names *named, uint32_t id,
			 uint32_t path[STACK_MAX_FRAMES]);

/* Write what tells the @nr functions of @path apart to @keys: the first place of each in it. */
void stack_names_keys(const struct stack_names *named, const uint32_t *path, size_t nr,
		      uint32_t *keys);

#endif
