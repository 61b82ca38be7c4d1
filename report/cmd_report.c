/* cmd_report.c - `mleak report`: read a trace, find what is outstanding, print it */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/dump.h"
#include "report/job.h"
#include "report/output.h"

static bool is_table(const struct report_opts *opts)
{
	return opts->by || opts->growth || opts->timeline;
}

static int print_stacks(const struct job *job, const struct export *export)
{
	const struct report_opts *opts = job->opts;
	struct table table = {
		.by = opts->by,
		.growth = job->growth,
		.timeline = opts->timeline,
		.csv = opts->format == FORMAT_CSV,
	};

	return is_table(opts) ? format_print_table(stdout, export, &table)
			      : format_print(stdout, opts->format, export, job->events);
}

/* Is more left than --fail-on-leak allows? */
static bool is_failure(const struct report_opts *opts, const struct export *export)
{
	struct live_amount amount = export_selected(export);

	return opts->fail_on_leak &&
	       (opts->fail_bytes ? amount.bytes > opts->fail_bytes : amount.blocks > 0);
}

static int print_report(struct job *job)
{
	const struct report_opts *opts = job->opts;
	bool places = is_table(opts) || format_wants_places(opts->format);
	int err, status = job_view(job, &opts->view, places);
	struct export export;

	if (status != EXIT_OK)
		return status;
	export = job_export(job);
	err = print_stacks(job, &export);
	if (err) {
		log_error("cannot make the report: %s", mlk_strerror(err));
		return EXIT_FAILED;
	}
	status = output_finish();
	return status == EXIT_OK && is_failure(opts, &export) ? EXIT_FAILED : status;
}

/* Make the report, or say why not.  Returns the exit status. */
static int report(const struct report_opts *opts)
{
	struct job job = {0};
	int err, status = job_open(&job, opts, opts->path);

	if (status == EXIT_OK && opts->dump) {
		err = dump_trace(stdout, job.trace, opts->dump_stacks);
		status = err ? job_explain_read(&job, err) : output_finish();
	} else if (status == EXIT_OK) {
		status = job_collect(&job);
		if (status == EXIT_OK)
			status = print_report(&job);
	}
	job_release(&job);
	return status;
}

int cmd_report(int argc, char **argv)
{
	struct report_opts opts;
	int err, status;

	/* `mleak report | head` is to end by output_finish(), not by the signal */
	signal(SIGPIPE, SIG_IGN);
	err = report_opts_parse(&opts, argc, argv);
	if (err) {
		status = err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
		if (err == -ENOMEM)
			log_error("cannot read the options: %s", strerror(ENOMEM));
	} else if (opts.help) {
		report_opts_print_help();
		status = output_finish();
	} else {
		/* no library may go to the network by itself */
		if (!opts.debuginfod)
			unsetenv("DEBUGINFOD_URLS");
		status = report(&opts);
	}
	report_opts_release(&opts);
	return status;
}
