/* lsan_suppressions.h - the leaks that a program itself declares to be known
 *
 * It does so by a function __lsan_default_suppressions(), for LeakSanitizer, which returns a
 * string. The function is not called: its code is read, and understood if it is what compilers make
 * of `return "...";`.
 */
#ifndef RECORD_LSAN_SUPPRESSIONS_H
#define RECORD_LSAN_SUPPRESSIONS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LSAN_SUPPRESSIONS_MAX (64 * 1024) /* bytes of the string, with its NUL */

/* What the function in @elf returns, to be freed by the caller.  @debug is its debug file, or @elf,
 * or NULL.  NULL without such a function, if it returns "", or if there is no memory; and, then
 * with *unclear, if what it returns cannot be determined. */
char *lsan_suppressions_of(Elf *elf, Elf *debug, bool *unclear);

/* The address that a function at @address returns, whose @len bytes of code are @code, if it does
 * nothing else.  Returns whether that is so. */
bool lsan_suppressions_returned(const uint8_t *code, size_t len, uint64_t address,
				uint64_t *returned);

#endif
