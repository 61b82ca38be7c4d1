/* short_name.h - names of functions as people write them
 *
 * The demangler spells out all template arguments, those that are the default, too: of
 * std::map<std::string, int> that is 200 characters.  A name is any text: where its brackets do not
 * match, it stays as it is.
 */
#ifndef REPORT_SHORT_NAME_H
#define REPORT_SHORT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* From now on all of these leave names as they are; one choice for the whole
 * process, made once by --full-names. */
void short_names_disable(void);

/* Copy @name without default template arguments and inline namespaces of the standard library,
 * std::basic_string<char> as std::string, and with ">>" for "> >".  The copy is never longer.
 *
 * Returns a string that the caller frees, or NULL when there is no memory. */
char *short_name(const char *name);

/* The same, and where that has more than @columns (not 0, which is no limit) shorter still: the
 * innermost template arguments become "...", then those around them, then the parameters; in the
 * end the name loses its beginning. */
char *name_to_fit(const char *name, size_t columns);

/* How many columns a name may have on a terminal of @columns (0: it is none), where @beside are
 * taken by what is before and behind it: at least some, for name_to_fit(). */
size_t name_room(size_t columns, size_t beside);

/* Print what name_to_fit() returns, or without memory all of @name.  Errors of writing are left in
 * @out for ferror(). */
void name_print(FILE *out, const char *name, size_t columns);

#endif
