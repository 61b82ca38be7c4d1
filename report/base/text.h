/* text.h - make text that came from a trace or a program safe and readable on a terminal
 *
 * Names come from the recorded program.  Printed as they are they could move the cursor, change
 * colours, reorder the line or break it.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/*
 * Copy @text, which may hold any bytes.  The copy is valid UTF-8 without control characters and
 * without characters that are invisible or change the direction of writing: those appear as \xHH (a
 * byte below 0x80 or one that is no UTF-8) or \u{H...} (a character).
 *
 * Returns a string that the caller frees, or NULL when there is no memory.
 */
char *text_escape(const char *text);

/* Print @text to @out as text_escape() would copy it.  Errors are left in @out for ferror(). */
void text_print(FILE *out, const char *text);

/* What is said of @nr blocks: "block" or "blocks". */
const char *text_blocks(uint64_t nr);

/* The name of the file @path: the part of it behind the last slash, if anything is there. */
const char *text_file_name(const char *path);

/* What a command that a user is told has for the trace @path: "FILE" for the standard input, which
 * was read to its end, else @path. */
const char *text_trace_argument(const char *path);

/* How many characters @text has, which is valid UTF-8: about so many columns it takes. */
size_t text_columns(const char *text);

#define TEXT_NUMBER_MAX 32 /* bytes for text_number(), with its NUL */

/* Write @number with commas between the thousands into @buf.  Returns @buf. */
const char *text_number(char buf[TEXT_NUMBER_MAX], uint64_t number);

#endif
