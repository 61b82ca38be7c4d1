/* stack_id.h - a number for a stack that is the same in all traces of one build
 *
 * It is made of the build-ids of the modules and of the places in them, not of names, paths or
 * addresses.  So it is the same whether there is debug information or not, wherever files and
 * modules are, and in each process.
 */
#ifndef REPORT_STACK_ID_H
#define REPORT_STACK_ID_H

#include "report/name/symbols.h"

/* The id of the stack of @nr @frames, innermost first, in modules of @source: 64 bits of FNV-1a. Of
 * a module without a build-id it is the file's name that counts, of memory without a file only that
 * there is a frame. */
uint64_t stack_id(const struct symbols_source *source, const struct dwunw_frame *frames, size_t nr);

#define STACK_ID_MAX 17 /* bytes for stack_id_text(), with its NUL */

/* Write @id as 16 hexadecimal digits.  Returns @buf. */
const char *stack_id_text(char buf[STACK_ID_MAX], uint64_t id);

/* Read what stack_id_text() writes; leading zeros may be missing.  Returns 0 or -EINVAL. */
int stack_id_parse(const char *text, uint64_t *id);

#endif
