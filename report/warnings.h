/* warnings.h - what is said on stderr of a trace that can be read */
#ifndef REPORT_WARNINGS_H
#define REPORT_WARNINGS_H

#include "report/report_run.h"

/* After report_run_collect(): warn of what is wrong with the trace, and in formats that have no
 * place for it of what figures stand for. */
void warn_of_trace(const struct report_run *job);

/* Say for each module why names are missing. */
void warn_of_names(const struct dwunw *dw);

/* After report_run_view(), when it shows nothing: warn of filters that nothing in the trace
 * matches;
 * *@unmatched: there are such.  Returns EXIT_OK, or EXIT_FAILED when memory is short. */
int warn_of_filters(const struct report_run *job, bool *unmatched);

/* Warn that what grew is not said, for lack of memory. */
void warn_of_no_growth(void);

#endif
