/* report_resident.c - the steps of --resident: see report_run.h */
#include <errno.h>
#include <stdio.h>

#include "mleak.h"
#include "report/ledger/print_ledger.h"
#include "report/ledger/residence.h"
#include "report/report_run.h"
#include "report/warnings.h"

int report_run_residences(struct report_run *job, struct block_filter *choice)
{
	const uint64_t start_ns = mlk_reader_meta(job->trace)->start_ns;
	const uint64_t stop_ns = choice->until ? start_ns + choice->until_ns : UINT64_MAX;
	uint64_t time_ns;
	int err = residences_find(&job->residences, job->trace, stop_ns);

	if (err)
		return report_run_explain_read(job, err);
	time_ns = residences_time(&job->residences);
	if (!time_ns) {
		log_error("'%s' does not say where the memory was%s: record it with --reach",
			  job->shown, choice->until ? " at that moment" : "");
		return EXIT_USAGE;
	}
	/* what was live then is what the pages hold */
	choice->until = true;
	choice->until_ns = time_ns > start_ns ? time_ns - start_ns : 0;
	return EXIT_OK;
}

/* The ledgers, with names.  Returns 0, -ENOMEM or -errno of read(2). */
static int make_ledgers(struct ledgers **out, const struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	struct ledgers_source source = {.path = job->path,
					.meta = mlk_reader_meta(job->trace),
					.leaks = job->leaks,
					.residences = &job->residences,
					.pid = opts->choice.pid,
					.top = opts->view.top};
	struct symbols_source names = {.dw = job->leaks->dw, .images = job->leaks->images};
	int err = mlk_reader_clone(&source.trace, job->trace);

	*out = NULL;
	if (err)
		return err;
	if (job->debuginfod)
		dwunw_debug_fetch_set(names.dw, debuginfod_fetch, job->debuginfod);
	err = ledgers_new(out, &source, &names, &opts->view);
	dwunw_debug_fetch_set(names.dw, NULL, NULL);
	mlk_reader_free(source.trace);
	return err;
}

int report_run_resident(struct report_run *job)
{
	struct ledgers *ledgers;
	int err = make_ledgers(&ledgers, job), status = EXIT_OK;

	if (err)
		return report_run_explain_make(job, err);
	warn_of_names(job->leaks->dw);
	if (!ledgers_any(ledgers)) {
		log_error("'%s' does not say where the memory of process %u was: leave --pid out "
			  "to see which processes it knows",
			  job->shown, (unsigned int)job->opts->choice.pid);
		status = EXIT_USAGE;
	} else if (job->opts->format == FORMAT_JSON) {
		print_ledgers_json(stdout, ledgers);
	} else {
		err = print_ledgers(stdout, ledgers);
	}
	ledgers_free(ledgers);
	return err ? report_run_explain_make(job, err) : status;
}

int report_run_resident_text(struct report_run *job)
{
	struct mlk_reader *trace;
	struct ledgers *ledgers = NULL;
	size_t len;
	FILE *out;
	int err = mlk_reader_clone(&trace, job->trace);

	/* of the page's own moment: the blocks are those that are shown */
	if (!err)
		err = residences_find(&job->residences, trace, job->leaks->chosen.end_ns);
	mlk_reader_free(trace);
	if (err)
		return report_run_explain_read(job, err);
	if (residences_time(&job->residences))
		err = make_ledgers(&ledgers, job);
	if (err || !ledgers || !ledgers_any(ledgers)) {
		ledgers_free(ledgers);
		return err ? report_run_explain_make(job, err) : EXIT_OK;
	}
	out = open_memstream(&job->resident, &len);
	err = out ? print_ledgers(out, ledgers) : -ENOMEM;
	if (out && fclose(out) && !err)
		err = -ENOMEM;
	ledgers_free(ledgers);
	return err ? report_run_explain_make(job, err) : EXIT_OK;
}
