/* trace_facts.h - whether a trace has the facts that a report needs */
#ifndef REPORT_TRACE_FACTS_H
#define REPORT_TRACE_FACTS_H

#include <stdbool.h>

#include "report/report_run.h"

/* Has the trace of @job, which is open, what its options ask for?  If not, says so. */
bool has_what_is_asked(const struct report_run *job);

#endif
