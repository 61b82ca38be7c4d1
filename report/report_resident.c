/* report_resident.c - the steps of --resident: see report_run.h */
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

int report_run_resident(struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	const struct ledgers_source source = {.path = job->path,
					      .meta = mlk_reader_meta(job->trace),
					      .leaks = job->leaks,
					      .residences = &job->residences,
					      .pid = opts->choice.pid,
					      .top = opts->view.top};
	struct symbols_source names = {.dw = job->leaks->dw, .images = job->leaks->images};
	struct ledgers *ledgers;
	int err, status = EXIT_OK;

	if (job->debuginfod)
		dwunw_debug_fetch_set(names.dw, debuginfod_fetch, job->debuginfod);
	err = ledgers_new(&ledgers, &source, &names, &opts->view);
	dwunw_debug_fetch_set(names.dw, NULL, NULL);
	if (err)
		return report_run_explain_make(job, err);
	warn_of_names(names.dw);
	if (!ledgers_any(ledgers)) {
		log_error("'%s' does not say where the memory of process %u was: leave --pid out "
			  "to see which processes it knows",
			  job->shown, (unsigned int)opts->choice.pid);
		status = EXIT_USAGE;
	} else if (opts->format == FORMAT_JSON) {
		print_ledgers_json(stdout, ledgers);
	} else {
		err = print_ledgers(stdout, ledgers);
	}
	ledgers_free(ledgers);
	return err ? report_run_explain_make(job, err) : status;
}
