/* keep_results.c - after a recording: what the first report needs, kept beside the trace */
#include <stdlib.h>

#include "format/cache.h"
#include "mleak.h"
#include "report/base/memory.h"
#include "report/cache/stack_cache.h"
#include "report/report_run.h"

/* A report of more takes longer than anybody wants to wait for who did not ask for it. */
#define MOST_EVENTS 30000000

static uint64_t count_events(struct mlk_reader *trace)
{
	const struct mlk_entry *entries;
	uint64_t events = 0;
	size_t nr;

	if (mlk_reader_list(trace, &entries, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (entries[i].records & MLK_RECORD_EVENT)
			events += entries[i].nr_records;
	return events;
}

/* Will somebody wait for the report, but not for long? */
static bool is_worth_it(const struct report_run *job)
{
	const uint64_t events = count_events(job->trace);

	return job->opts->cache == CACHE_ALWAYS ||
	       (events >= STACK_CACHE_LEAST && events <= MOST_EVENTS);
}

static void replay_and_keep(struct report_run *job)
{
	int err;

	if (!is_worth_it(job) || !stack_cache_can_be_made(job->path, job->trace))
		return;
	log_info("preparing the first report, in '%s%s'; Ctrl-C ends that", job->path,
		 MLK_CACHE_SUFFIX);
	if (report_run_replay(job) == EXIT_OK)
		report_run_keep(job);
	err = job->cache ? stack_cache_write_error(job->cache) : 0;
	if (err)
		log_info("'%s%s' was not written, or not all of it: %s; the trace is whole, and "
			 "its first report takes longer",
			 job->path, MLK_CACHE_SUFFIX, mlk_strerror(err));
}

void keep_results(const char *path)
{
	char *argv[] = {(char *)"report", (char *)"--no-pager", (char *)"--", (char *)path, NULL};
	struct report_run job = {0};
	struct report_opts opts;

	log_no_errors(); /* what is wrong the report says */
	if (!report_opts_parse(&opts, 4, argv) && cache_mode_read(&opts.cache) &&
	    opts.cache != CACHE_NEVER) {
		opts.quiet = log_is_quiet();
		unsetenv("DEBUGINFOD_URLS"); /* no library may go to the network by itself */
		memory_limit(opts.max_memory);
		if (report_run_open(&job, &opts, path, NULL) == EXIT_OK)
			replay_and_keep(&job);
	}
	report_run_release(&job);
	report_opts_release(&opts);
}
