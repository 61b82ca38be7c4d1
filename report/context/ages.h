/* ages.h - how old the outstanding blocks of each stack are */
#ifndef REPORT_AGES_H
#define REPORT_AGES_H

#include <stdio.h>

#include "report/replay/replay.h"

/* Classes of age, from the youngest. */
#define AGES_NR 8

/* The class of blocks that are @age_ns nanoseconds old. */
size_t ages_class(uint64_t age_ns);

/* What is said of class @i (below AGES_NR): "< 1 s", ...; and from which age on blocks are in it,
 * in nanoseconds. */
const char *ages_text(size_t i);
uint64_t ages_from_ns(size_t i);

struct ages; /* opaque: of all stacks of a report */

/* The ages of the chosen blocks of @leaks, at the end of the examined time.  *@out is NULL on
 * failure.  Returns 0 or -ENOMEM. */
int ages_new(struct ages **out, const struct replay *leaks);

/* What is outstanding of stack @number of the report in each class; valid until ages_free(). */
const struct live_amount *ages_of(const struct ages *ages, uint32_t number);

/* Print how many blocks of stack @number are how old, as "age: 3 blocks < 1 s, 1 block 1 s - 10 s"
 * without an end of line; nothing when there are none.  Errors are left in @out for ferror(). */
void ages_print(FILE *out, const struct ages *ages, uint32_t number);

/* Release @ages; NULL is allowed. */
void ages_free(struct ages *ages);

#endif
