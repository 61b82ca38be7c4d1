/* print_overruns.h - the blocks that were written beyond their bounds, in a report */
#ifndef REPORT_PRINT_OVERRUNS_H
#define REPORT_PRINT_OVERRUNS_H

#include "report/context/report_data.h"
#include "report/view/stack_names.h"

#define OVERRUNS_SHOWN 20 /* sites that are described in full */

/* Name the stacks of what is told in full.  *@out is released with stack_names_free(), NULL on
 * failure. Returns 0 or -ENOMEM. */
int overruns_names(struct stack_names **out, const struct replay *leaks,
		   const struct symbols_source *source, const struct view_opts *opts);

/* How many there are, in a summary; nothing where blocks were not watched. */
void print_overruns_count(FILE *out, const struct mlk_meta *meta, const struct replay *leaks);

/* Report them; nothing if there are none. */
void print_overruns(FILE *out, const struct report_data *export);

/* The same as member "overruns"; doc/report-json.md says what is in it. */
void overruns_json(struct json *json, const struct report_data *export);

#endif
