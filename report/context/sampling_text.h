/* sampling_text.h - what the recording left out on purpose, and what that makes of the figures */
#ifndef REPORT_SAMPLING_TEXT_H
#define REPORT_SAMPLING_TEXT_H

#include <stdio.h>

#include "report/replay/replay.h"

#define SAMPLE_TEXT_MAX 96 /* bytes for print_sampling_rate() */

/* Write how allocations were sampled, "one of 100 allocations", into @buf.  Returns @buf, or NULL
 * when they were not. */
const char *print_sampling_rate(char buf[SAMPLE_TEXT_MAX], const struct mlk_meta *meta);

/* In a few words what kinds of blocks were not recorded, and that figures are estimates: a string
 * that the caller frees, "" if there is nothing of that, or NULL when there is no memory. */
char *sampling_notes(const struct mlk_meta *meta, const struct mlk_losses *losses);

/* The standard error of a sum with this @variance, rounded up. */
uint64_t print_sampling_error(double variance);

/* Print a line for each filter that @meta names, or that left something out; nothing when there was
 * none.  Errors of writing are left in @out for ferror(). */
void print_sampling(FILE *out, const struct mlk_meta *meta, const struct replay *leaks);

#endif
