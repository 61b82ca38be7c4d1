/* option_apply.h - what each option of `mleak report` does to struct report_opts */
#ifndef REPORT_OPTION_APPLY_H
#define REPORT_OPTION_APPLY_H

#include "report/options/options.h"

/*
 * Take in the option with the value @option, of which option_row_of() knows.  @arg is its argument,
 * NULL when there is none; it is borrowed as long as @opts is used.
 * Returns 0, or -EINVAL: it has been said on stderr what is wrong.
 */
int option_apply(struct report_opts *opts, int option, const char *arg);

#endif
