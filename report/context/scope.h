/* scope.h - of which moment, blocks and stacks a report is */
#ifndef REPORT_SCOPE_H
#define REPORT_SCOPE_H

#include "report/base/json.h"
#include "report/context/report_data.h"

/* What options chose, as "blocks given out between 0.2 s and 0.5 s by thread 'x'", to be freed; ""
 * when it is all.  *@text is NULL on failure.  Returns 0 or -ENOMEM. */
int shown_text(char **text, const struct report_data *export);

/* Print it as a line of the summary, nothing when it is all.  Returns 0 or -ENOMEM; errors of
 * writing are left in @out for ferror(). */
int print_scope(FILE *out, const struct report_data *export);

/* Write it as the member `shown`: an object with a member for each option that chose.  Returns 0 or
 * -ENOMEM. */
int shown_json(struct json *json, const struct report_data *export);

#endif
