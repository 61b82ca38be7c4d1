/* growth_answer.h - is it growing, where, and since when: above and below a tree */
#ifndef REPORT_GROWTH_ANSWER_H
#define REPORT_GROWTH_ANSWER_H

#include "report/context/growth_rows.h"

/* Can shapes say what grows? */
bool growth_is_told(const struct report_data *export);

/* Print it as lines of the summary: the growth of all stacks that grow, and the first of them; and
 * those that did not because they replace older blocks.  Errors are left in @out for ferror(). */
void print_growth_answer(FILE *out, const struct report_data *export,
			 const struct growth_rows *rows);

/* Print what grows most, without the end of a line.  Returns false, with nothing printed, if
 * nothing grows, or if the recording lasted less than a second. */
bool print_growing(FILE *out, const struct report_data *export, const struct growth_rows *rows);

/* Print that, or that nothing grows or it cannot be told; without the end of a line. */
void print_growth_verdict(FILE *out, const struct report_data *export,
			  const struct growth_rows *rows);

/* Print in one line, after an empty one, what grows most and the command that shows more. */
void print_growth_line(FILE *out, const struct report_data *export, const struct growth_rows *rows);

#endif
