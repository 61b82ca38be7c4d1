/* memory_answer.h - does the process grow, but not by the blocks that were recorded? */
#ifndef REPORT_MEMORY_ANSWER_H
#define REPORT_MEMORY_ANSWER_H

#include "report/context/report_data.h"

/* What RSS did, to be freed, and why that is not the blocks (static text).  Both are NULL unless
 * the trace shows it: all allocations of one process, and an RSS that grew by far more than was
 * ever outstanding. */
struct memory_answer {
	char *what;
	const char *why;
};

/* Returns 0 or -ENOMEM. */
int memory_answer(struct memory_answer *answer, const struct report_data *export);

/* Print it as a line of the summary.  Returns 0 or -ENOMEM; errors of writing are left in @out for
 * ferror(). */
int print_memory_answer(FILE *out, const struct report_data *export);

#endif
