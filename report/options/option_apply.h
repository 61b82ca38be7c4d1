/* option_apply.h - what each option of `mleak report` does to struct report_opts */
#ifndef REPORT_OPTION_APPLY_H
#define REPORT_OPTION_APPLY_H

#include "cmdline/options.h"
#include "report/options/options.h"

/* Apply an option of option_table.h to @ctx, a struct report_opts, which borrows @text.  See
 * options.h. */
option_apply_fn option_apply;

#endif
