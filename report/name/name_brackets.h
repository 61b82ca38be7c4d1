/* name_brackets.h - where in a name of C++ or Rust the template arguments are
 *
 * "<" is a bracket behind an identifier, but not in "operator<"; ">" is none in "->", nor in an
 * expression between parentheses.
 */
#ifndef REPORT_NAME_BRACKETS_H
#define REPORT_NAME_BRACKETS_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_MAX_DEPTH 128 /* brackets within brackets */

/* What a character of a name is. */
enum name_mark {
	MARK_PLAIN,
	MARK_OPEN,  /* "<" before template arguments */
	MARK_COMMA, /* between two of them */
	MARK_CLOSE, /* ">" behind them */
};

/* Write what each of the @len characters of @name is (enum name_mark) to @marks.  False: its
 * brackets do not match, or there are too many. */
bool name_brackets(const char *name, size_t len, unsigned char *marks);

/* Can @c be in an identifier? */
bool name_is_identifier(char c);

#endif
