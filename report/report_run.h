/* report_run.h - the steps from the path of a trace to what a format prints, and what is said on stderr
 * when one fails
 *
 * The steps return EXIT_OK or the exit status to end with; then it has been said why.
 */
#ifndef REPORT_JOB_H
#define REPORT_JOB_H

#include "report/name/debuginfod.h"
#include "report/options/options.h"

/* One trace, as far as the steps have come.  All zero is before the first. */
struct job {
	const struct report_opts *opts; /* borrowed, as is the path */
	const char *path;
	char *shown; /* the path, safe to print */
	struct mlk_reader *trace;
	struct debuginfod *debuginfod;
	struct suppressions *suppressions;
	struct heaptrack_events *events; /* for that format alone */
	struct growth *growth;		 /* for --growth and --timeline */
	struct holders *holders;	 /* for --addr */
	struct leaks *leaks;
	struct view *view;
	struct named *overrun_names;
	struct places *places;
};

/* Open the trace at @path.  @job is to be released in any case. */
int job_open(struct job *job, const struct report_opts *opts, const char *path);

/* Open the trace at @path for a command that needs nothing else of struct job.  @shown is the path,
 * safe to print.  *@trace is NULL on failure.  Returns EXIT_OK or EXIT_USAGE. */
int job_open_trace(struct mlk_reader **trace, const char *path, const char *shown);

/* Replay it, and warn of what is wrong with it. */
int job_collect(struct job *job);

/* Choose and name the stacks that are to be shown, as @view says, and if @places with their places.
 */
int job_view(struct job *job, const struct view_opts *view, bool places);

/* Tell of the address that --addr names, in place of a report. */
int job_address(struct job *job);

/* What a format is made of, after job_view(). */
struct export job_export(const struct job *job);

/* Say that the trace cannot be read for @err. */
int job_explain_read(const struct job *job, int err);

/* Say that no report can be made of it for @err. */
int job_explain_make(const struct job *job, int err);

/* Release what @job holds. */
void job_release(struct job *job);

#endif
