/* values.h - numbers as people write them on a command line, in one way for all commands
 *
 * Each reads all of @text into *@value and returns 0, or -EINVAL if it is no such thing.
 */
#ifndef CMDLINE_VALUES_H
#define CMDLINE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* What an option that takes a range, or a variable, wants. */
#define ROOT_EXPECTED "a range of addresses as 0x7f5000-0x7f6000, or the name of a variable"

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

/* Two of them with a minus between, of which the second one is larger: [*@start, *@end). */
int value_range(const char *text, uint64_t *start, uint64_t *end);

#endif
