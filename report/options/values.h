/* values.h - numbers as people write them on a command line
 *
 * Each reads all of @text into *@value and returns 0, or -EINVAL if it is no such thing.
 */
#ifndef REPORT_VALUES_H
#define REPORT_VALUES_H

#include <stdint.h>

/* Decimal digits. */
int value_number(const char *text, uint64_t *value);

/* Bytes: a number, or one with K, M, G or T, which are powers of 1024, behind it. */
int value_bytes(const char *text, uint64_t *value);

/* Nanoseconds: a number of seconds, which may have a fraction, or one with ms, s, m, h or d behind
 * it. */
int value_time(const char *text, uint64_t *value);

/* An address: hexadecimal behind 0x, or decimal. */
int value_address(const char *text, uint64_t *value);

/* Two times with a comma between, of which the second is not before the first. */
int value_times(const char *text, uint64_t *from, uint64_t *to);

#endif
