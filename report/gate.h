/* gate.h - a report as a check: what the exit status says of a trace
 *
 * A check that cannot know must not pass.  What is certain to be left fails with EXIT_LEAKS; where
 * the trace does not tell, the status is EXIT_UNKNOWN, and it has been said why.
 */
#ifndef REPORT_GATE_H
#define REPORT_GATE_H

#include "report/report_run.h"

#define GATE_TEXT 512

/* What a report says as a check. */
struct gate {
	int status;	      /* EXIT_OK, EXIT_LEAKS or EXIT_UNKNOWN */
	char text[GATE_TEXT]; /* why it is unknown, or what grows; "": nothing is to be said */
};

/* Judge the trace of @job by --fail-on-leak, as if that were given.  @unmatched: an option chose by
 * what nothing in the trace has. */
struct gate gate_leaks(const struct report_run *job, const struct report_data *export,
		       bool unmatched);

/* The exit status of the report on @job's trace, which was printed: EXIT_OK, EXIT_LEAKS or
 * EXIT_UNKNOWN, by --fail-on-leak and --fail-on.  Says why where the report does not. */
int gate_report(const struct report_run *job, const struct report_data *export, bool unmatched);

/* Likewise of the difference of two traces, in which @came is what became more. */
int gate_difference(const struct report_run *before, const struct report_run *after,
		    struct live_amount came, bool unmatched);

/* Likewise where nothing is looked for: EXIT_UNKNOWN if --strict is requested and there was a
 * warning, else EXIT_OK. */
int gate_strict(const struct report_opts *opts);

#endif
