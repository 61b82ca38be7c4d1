/* values.h - numbers as people write them on a command line, in one way for all commands
 *
 * Each reads all of @text into *@value and returns 0, or -EINVAL if it is no such thing.
 */
#ifndef CMDLINE_VALUES_H
#define CMDLINE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits. */
int value_number(const char *text, uint64_t *value);

/* Bytes: a number, and a unit or none: B, K, M, G, T, KB, MB, GB or TB, in either case, of powers
 * of 1024. */
int value_bytes(const char *text, uint64_t *value);

/* Does the number @text, which may be read as bytes, have a unit? */
bool value_has_unit(const char *text);

/* Nanoseconds: a number of seconds, which may have a fraction, or one with us, ms, s, m, h or d
 * behind it. */
int value_time(const char *text, uint64_t *value);

/* An address: hexadecimal behind 0x, or decimal. */
int value_address(const char *text, uint64_t *value);

#endif
