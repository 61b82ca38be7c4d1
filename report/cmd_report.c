/* cmd_report.c - `mleak report` and `mleak diff`: read a trace, find what is outstanding, print it
 */
#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "report/diff/print_diff.h"
#include "report/dump/dump.h"
#include "report/gate.h"
#include "report/moments.h"
#include "report/report_run.h"
#include "report/terminal/pager.h"
#include "report/warnings.h"

static bool is_table(const struct report_opts *opts)
{
	return opts->by || opts->growth || opts->timeline;
}

static int print_stacks(const struct report_run *job, const struct report_data *export)
{
	const struct report_opts *opts = job->opts;
	struct table table = {
		.by = opts->by,
		.growth = job->growth,
		.timeline = opts->timeline,
		.opts = {.format = format_of_table(opts->format), .top = opts->view.top},
	};

	return is_table(opts) ? format_print_table(stdout, export, &table)
			      : format_print(stdout, opts->format, export, job->events);
}

/* What people read is read in a pager. */
static void page(const struct report_opts *opts)
{
	if (!opts->no_pager && (opts->format == FORMAT_TREE || opts->format == FORMAT_FLAT))
		pager_start();
}

static int print_report(struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	bool places = is_table(opts) || format_wants_places(opts->format);
	struct view_opts view = opts->view;
	struct report_data export;
	struct verdict verdict;
	struct gate judged;
	bool unmatched = false;
	int err, status;

	/* a table is made of all stacks, and cut then */
	if (is_table(opts))
		view.top = 0;
	if (group_is_threads(opts->by))
		view.all = true;
	status = report_run_view(job, &view, places);
	if (status == EXIT_OK && !job->view->nr)
		status = warn_of_filters(job, &unmatched);
	if (status == EXIT_OK && opts->format == FORMAT_HTML && !is_table(opts))
		status = report_run_resident_text(job);
	if (status != EXIT_OK)
		return status;
	export = report_run_export(job);
	if (format_wants_verdict(opts->format)) {
		judged = gate_leaks(job, &export, unmatched);
		verdict.leaks = judged.status == EXIT_LEAKS;
		verdict.doubt = judged.status == EXIT_UNKNOWN ? judged.text : NULL;
		export.verdict = &verdict;
	}
	page(opts);
	err = print_stacks(job, &export);
	if (err)
		return report_run_explain_make(job, err);
	status = pager_finish();
	return status == EXIT_OK ? gate_report(job, &export, unmatched) : status;
}

/* Is what is printed no report, but the answer to a question? */
static bool is_answer(const struct report_opts *opts)
{
	return opts->find_addr || opts->resident;
}

static int collect(struct report_run *job, struct report_opts *opts)
{
	int status = opts->resident ? report_run_residences(job, &opts->choice) : EXIT_OK;

	return status == EXIT_OK ? report_run_collect(job) : status;
}

static int print_answer(struct report_run *job)
{
	int status;

	page(job->opts);
	status = job->opts->resident ? report_run_resident(job) : report_run_address(job);
	if (status == EXIT_OK)
		status = pager_finish();
	return status == EXIT_OK ? gate_strict(job->opts) : status;
}

/* Collect and name one side of a difference, in which no stack is left out but by its frames.  With
 * @other of the same trace, which must outlive it.  @opts gets the times of moments. */
static int prepare_side(struct report_run *job, struct report_opts *opts, const char *path,
			const struct report_run *other)
{
	struct view_opts view = opts->view;
	int status = report_run_open(job, opts, path, other);

	view.top = 0;
	view.details = true;
	view.sieve.any_amount = true;
	if (status == EXIT_OK)
		status = moments_find(&opts->choice, job);
	if (status == EXIT_OK)
		status = report_run_collect(job);
	return status == EXIT_OK ? report_run_view(job, &view, true) : status;
}

static int print_difference(const struct report_opts *opts, const struct report_run *before,
			    const struct report_run *after, bool unmatched)
{
	struct report_data from = report_run_export(before), to = report_run_export(after);
	struct diff_opts how = {.top = opts->view.top,
				.format = opts->format == FORMAT_CSV	  ? DIFF_CSV
					  : opts->format == FORMAT_JSON	  ? DIFF_JSON
					  : opts->format == FORMAT_FOLDED ? DIFF_FOLDED
					  : opts->format == FORMAT_HTML	  ? DIFF_HTML
									  : DIFF_TEXT};
	struct diff *diff = NULL;
	int err, status;

	page(opts);
	err = diff_new(&diff, &from, &to);
	if (!err)
		err = print_diff(stdout, diff, &how);
	if (err) {
		status = report_run_explain_make(after, err);
	} else {
		status = pager_finish();
	}
	/* a new leak is one even where another has become smaller by more */
	if (status == EXIT_OK)
		status = gate_difference(before, after, diff_came(diff), unmatched);
	diff_free(diff);
	return status;
}

static int diff(const struct report_opts *opts)
{
	struct report_run before = {0}, after = {0};
	/* they borrow what is allocated for @opts */
	struct report_opts opts_before = *opts, opts_after = *opts;
	bool unmatched = false;
	int status;

	if (opts->choice.pid_before)
		opts_before.choice.pid = opts->choice.pid_before;
	if (opts->choice.moments) {
		opts_before.choice.until_ns = opts->choice.until_before_ns;
		opts_before.choice.until_mark = opts->choice.until_before_mark;
	}
	opts_before.choice.until_before_mark = NULL;
	status = prepare_side(&before, &opts_before, opts->before, NULL);
	if (opts->choice.moments)
		opts_after.choice.until_before_ns = opts_before.choice.until_ns;
	opts_after.choice.until_before_mark = NULL;
	if (status == EXIT_OK)
		status = prepare_side(&after, &opts_after, opts->path,
				      opts->before == opts->path ? &before : NULL);
	if (status == EXIT_OK && opts->choice.moments && opts->before == opts->path)
		status = moments_check(opts_before.choice.until_ns, opts_after.choice.until_ns);
	/* a difference shows what only one of them has */
	if (status == EXIT_OK && !before.view->nr && !after.view->nr)
		status = warn_of_filters(&after, &unmatched);
	if (status == EXIT_OK)
		status = print_difference(opts, &before, &after, unmatched);
	report_run_release(&after);
	report_run_release(&before);
	return status;
}

/* Make the report, or say why not.  Returns the exit status. */
static int report(const struct report_opts *opts)
{
	struct report_opts found = *opts; /* borrows what is allocated for @opts */
	struct report_run job = {0};
	int err, status = report_run_open(&job, &found, opts->path, NULL);

	if (status == EXIT_OK)
		status = moments_find(&found.choice, &job);
	if (status == EXIT_OK && opts->dump) {
		err = dump_trace(stdout, job.trace, opts->dump_stacks);
		status = err ? report_run_explain_read(&job, err) : pager_finish();
	} else if (status == EXIT_OK) {
		status = collect(&job, &found);
		if (status == EXIT_OK)
			status = is_answer(opts) ? print_answer(&job) : print_report(&job);
		if (job.view)
			report_run_keep(&job);
	}
	report_run_release(&job);
	return status;
}

static int report_or_diff(const struct report_opts *opts)
{
	return opts->before ? diff(opts) : report(opts);
}

int cmd_report(int argc, char **argv)
{
	return command_run(argc, argv, report_or_diff);
}
