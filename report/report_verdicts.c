/* report_verdicts.c - the step of a report that judges blocks by the pointers in the trace */
#include "mleak.h"
#include "report/report_run.h"

/* Does the report tell of the pointers in memory? */
static bool tells_verdicts(const struct report_opts *opts)
{
	return opts->verdicts || ((opts->format == FORMAT_TREE || opts->format == FORMAT_FLAT ||
				   opts->format == FORMAT_JSON) &&
				  !opts->before && !opts->dump && !opts->find_addr);
}

int report_run_verdicts(struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	int err = 0;

	job->verdict.wanted = opts->verdicts;
	if (tells_verdicts(opts))
		err = verdict_choice_find(&job->verdict, job->trace, &opts->choice,
					  opts->starts_only);
	if (err)
		return report_run_explain_read(job, err);
	if (!opts->verdicts || job->verdict.verdicts)
		return EXIT_OK;
	log_error("'%s' has no whole snapshot of the pointers in memory: record it with --reach",
		  job->shown);
	return EXIT_USAGE;
}
