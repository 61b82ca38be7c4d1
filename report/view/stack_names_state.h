/* stack_names_state.h - what names of stacks are made of, for stack_names.c and stack_line.c alone
 */
#ifndef REPORT_STACK_NAMES_STATE_H
#define REPORT_STACK_NAMES_STATE_H

#include "report/view/stack_names.h"

/* See stack_names.h. */
struct stack_names {
	struct symbols_source source;
	struct symbols_opts opts;
	bool color;
	bool full_recursion;
	size_t columns;
	struct symbols *names;
	struct labels *labels;
};

/* Write the outermost label of each frame of stack @id to @path.  Returns how many there are. */
size_t stack_names_outer(const struct stack_names *named, uint32_t id,
			 uint32_t path[STACK_MAX_FRAMES]);

/* Write what tells the @nr functions of @path apart to @keys: the first place of each in it. */
void stack_names_keys(const struct stack_names *named, const uint32_t *path, size_t nr,
		      uint32_t *keys);

#endif
