/* print_threads.h - what each thread allocated, and who freed it */
#ifndef REPORT_PRINT_THREADS_H
#define REPORT_PRINT_THREADS_H

#include "report/context/report_data.h"

/*
 * Print to @out a line for each thread, or with @by_name for all that have a name, most outstanding
 * bytes first; then which threads freed most of what others had allocated.
 * Returns 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
int print_threads(FILE *out, const struct report_data *export, bool by_name,
		  const struct table_opts *opts);

#endif
