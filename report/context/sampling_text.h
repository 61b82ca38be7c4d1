/* sampling_text.h - what the recording left out on purpose, and what that makes of the figures */
#ifndef REPORT_PRINT_FILTERS_H
#define REPORT_PRINT_FILTERS_H

#include <stdio.h>

#include "report/replay/replay.h"

#define SAMPLE_TEXT_MAX 96

/* Write how allocations were sampled, "one of 100 allocations", into @buf.  Returns @buf, or NULL
 * when they were not. */
const char *print_filters_sample(char buf[SAMPLE_TEXT_MAX], const struct mlk_meta *meta);

/* The standard error of a sum with this @variance, rounded up. */
uint64_t print_filters_error(double variance);

/* Print a line for each filter that @meta tells of, or that left something out; nothing when there
 * was none.  Errors of writing are left in @out for ferror(). */
void print_filters(FILE *out, const struct mlk_meta *meta, const struct leaks *leaks);

#endif
