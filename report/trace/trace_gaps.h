/* trace_gaps.h - warnings of what a trace that can be read does not hold any more */
#ifndef REPORT_TRACE_GAPS_H
#define REPORT_TRACE_GAPS_H

#include "format/reader.h"

/* @trace was read to its end, and is in @condition then: warn of all that it does not hold any
 * more, with lost chunks @with.  @path is safe to print. */
void warn_of_gaps(const char *path, const struct mlk_reader *trace,
		  const struct mlk_condition *condition, const char *with);

#endif
