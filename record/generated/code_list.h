/* code_list.h - names of functions, as the lines of a perf map have them */
#ifndef RECORD_CODE_LIST_H
#define RECORD_CODE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/code_names.h"

/* Names that point into the text that they were read from. */
struct code_list {
	struct mlk_code_name *v;
	size_t nr, room;
	uint64_t strange; /* bytes of lines that say nothing */
};

/* Append [@start, @start + @len), not empty, with @name, which must live as long as the list.
 * @no_files: without the path that it contains; then @name is changed.  Returns 0 or -ENOMEM. */
int code_list_add(struct code_list *list, uint64_t start, uint64_t len, char *name, bool no_files);

/* The space in @name behind which the place of its function is, a path or FILE:LINE; or NULL. */
const char *code_list_place(const char *name);

/*
 * Append what the lines in @text, @len bytes, say: "START SIZE NAME\n" with numbers in base 16.
 * @text is changed, and must live as long as the list.  What lies behind the last end of a line is
 * not looked at: *@taken is where that begins.  @no_files: without the paths that names contain.
 * Returns 0 or -ENOMEM.
 */
int code_list_read(struct code_list *list, char *text, size_t len, bool no_files, size_t *taken);

/* Release what @list holds, and make it empty. */
void code_list_release(struct code_list *list);

#endif
