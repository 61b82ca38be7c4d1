/* memory_answer.h - does the process grow, but not by the blocks that were recorded? */
#ifndef REPORT_MEMORY_ANSWER_H
#define REPORT_MEMORY_ANSWER_H

#include "report/context/report_data.h"

/* Print it as a line of the summary; nothing unless the trace shows it: all allocations of one
 * process, and an RSS that grew by far more than was ever outstanding.  Errors are left in @out
 * for ferror(). */
void print_memory_answer(FILE *out, const struct report_data *export);

#endif
