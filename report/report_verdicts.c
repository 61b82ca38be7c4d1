/* report_verdicts.c - the step of a report that judges blocks by the pointers in the trace */
#include <inttypes.h>
#include <stdlib.h>

#include "mleak.h"
#include "report/report_run.h"
#include "report/why/why.h"

/* Is there no answer without them? */
static bool needs_verdicts(const struct report_opts *opts)
{
	return opts->verdicts || opts->starts_only || opts->nr_roots || opts->why ||
	       opts->fail_on_lost || opts->view.cost == COST_LOST;
}

/* Say why the trace has none. */
static int explain_lack(const struct report_run *job)
{
	uint64_t first_ns, start_ns = mlk_reader_meta(job->trace)->start_ns;
	bool exited;
	int lack, err = verdict_choice_explain(job->trace, &job->opts->choice, &lack, &first_ns,
					       &exited);

	if (err)
		return report_run_explain_read(job, err);
	if (lack == VERDICT_LACKS_TIME)
		log_error("the first snapshot of the pointers in '%s' ended at %.3f s, after the "
			  "chosen moment: choose a later one by --at",
			  job->shown,
			  (double)(first_ns > start_ns ? first_ns - start_ns : 0) / 1e9);
	else if (lack == VERDICT_LACKS_END)
		log_error("no snapshot of the pointers in '%s' is whole: the process ended while "
			  "its memory was read; end the recording before it does, by --duration",
			  job->shown);
	else if (lack == VERDICT_LACKS_WHOLE)
		log_error("no snapshot of the pointers in '%s' is whole: the trace is damaged; "
			  "copy it again or record anew",
			  job->shown);
	else if (exited)
		log_error("'%s' has no snapshot of the pointers in memory: the process ended "
			  "before its memory was read, or --reach was not given; record it with "
			  "--reach and --duration",
			  job->shown);
	else
		log_error("'%s' has no snapshot of the pointers in memory: record it with --reach",
			  job->shown);
	return EXIT_USAGE;
}

/* Has the chosen process been judged? */
static bool has_process(const struct report_run *job)
{
	const struct verdicts *v = job->verdict.verdicts;
	uint32_t pid = job->opts->choice.pid;
	size_t len;
	char *list = NULL;
	FILE *out;

	for (size_t i = 0; i < verdicts_nr(v); i++)
		if (!pid || verdicts_process(v, i)->tgid == pid)
			return true;
	out = open_memstream(&list, &len);
	for (size_t i = 0; out && i < verdicts_nr(v) && i < 20; i++)
		fprintf(out, "%s%" PRIu32, i ? ", " : "", verdicts_process(v, i)->tgid);
	if (out)
		fclose(out);
	log_error("'%s' has no whole snapshot of the pointers of process %" PRIu32
		  ", but of these: %s",
		  job->shown, pid, list ? list : "");
	free(list);
	return false;
}

/* Is each root that was chosen in memory that was read? */
static bool has_roots(const struct report_run *job)
{
	const struct report_opts *opts = job->opts;

	for (size_t i = 0; i < opts->nr_roots; i++) {
		const struct root_choice *root = &opts->roots[i];

		if (root->found)
			continue;
		log_error(root->named
				  ? "--root: no program or library in '%s' has a variable '%s' in "
				    "memory that was read"
				  : "--root: of the memory of '%s', nothing was read at %s",
			  job->shown, root->text);
		return false;
	}
	return true;
}

int report_run_verdicts(struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	int err = 0;

	job->verdict.wanted = opts->verdicts;
	job->verdict.starts_only = opts->starts_only;
	job->verdict.tag_mask = opts->tag_mask;
	job->verdict.roots = opts->roots;
	job->verdict.nr_roots = opts->nr_roots;
	job->verdict.holders = opts->why;
	if (report_opts_tell_verdicts(opts))
		err = verdict_choice_find(&job->verdict, job->trace, &opts->choice);
	if (err)
		return report_run_explain_read(job, err);
	if (!needs_verdicts(opts))
		return EXIT_OK;
	if (!job->verdict.verdicts)
		return explain_lack(job);
	return has_process(job) && has_roots(job) ? EXIT_OK : EXIT_USAGE;
}
