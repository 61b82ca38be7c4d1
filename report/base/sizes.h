/* sizes.h - bytes for people: in KiB, MiB and so on, or exact
 *
 * Which of them is a choice for the whole process, as the hash of hash_index.h is: it is made once,
 * by --bytes, before anything is printed.  Formats for programs print numbers of their own.
 */
#ifndef REPORT_SIZES_H
#define REPORT_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#define SIZE_TEXT_MAX  48    /* bytes for each of these, with its NUL */
#define SIZE_EXACT_MAX 10240 /* less is exact in any case */

/* From now on all of them are exact, or those below SIZE_EXACT_MAX alone, as in the beginning. */
void sizes_set_exact(bool exact);

/* In a sentence: "1 byte", "9,964 bytes", "20.0 KiB".  Returns @buf, as do the others. */
const char *size_text(char buf[SIZE_TEXT_MAX], uint64_t bytes);

/* In a column: "9,964 B", "20.0 KiB"; if all are exact a number alone, below size_title(). */
const char *size_cell(char buf[SIZE_TEXT_MAX], uint64_t bytes);

/* The same with a sign: how much more @after is than @before. */
const char *size_change_text(char buf[SIZE_TEXT_MAX], uint64_t before, uint64_t after);
const char *size_change_cell(char buf[SIZE_TEXT_MAX], uint64_t before, uint64_t after);

/* A rate in bytes, rounded, with its sign; "0 B" has none. */
const char *size_rate_cell(char buf[SIZE_TEXT_MAX], double rate);

/* And in a sentence. */
const char *size_rate_text(char buf[SIZE_TEXT_MAX], double rate);

/* @rate, in bytes a minute, for a format that programs read: the nearest whole number, and of two
   the one further from 0.  At most 2^53, beyond which JSON's readers have no whole numbers. */
int64_t size_rate_whole(double rate);

/* What is above a column: "bytes" or "size". */
const char *size_title(void);

/* The same above one of rates: @exact as "bytes/min" or @other. */
const char *size_rate_title(const char *exact, const char *other);

#endif
