/* report_cache.c - the part of report_run.h about what is kept beside a trace */
#include <string.h>

#include "report/replay/results.h"
#include "report/report_run.h"

/* Does no option change what is replayed, so that the results of another report are those of this
 * one? */
static bool is_plain(const struct report_run *job)
{
	const struct block_filter *choice = &job->opts->choice;

	return !job->opts->temporary_ns && !job->events && !job->accounts && !job->times &&
	       !job->holders && !job->verdict.verdicts && !choice->thread && !choice->pid &&
	       !choice->pid_before && !choice->older_ns && !choice->from_ns && !choice->until &&
	       !choice->moments && !choice->from_mark && !choice->only;
}

int report_run_find_cache(struct report_run *job)
{
	job->plain = is_plain(job);
	if (job->cache || job->opts->cache == CACHE_NEVER || !strcmp(job->path, "-"))
		return 0;
	return stack_cache_new(&job->cache, job->path, job->opts->cache == CACHE_ALWAYS);
}

/* Would the next report find nothing else, and have nothing more to tell of the trace's state? */
static bool is_whole(const struct replay *leaks)
{
	return !leaks->overruns->nr && !leaks->condition.chunks_lost &&
	       !leaks->condition.bytes_skipped && !leaks->condition.unwound_unused;
}

void report_run_keep(const struct report_run *job)
{
	const bool growth = job->growth;
	struct save results = {0};

	if (!job->cache || !job->plain || !is_whole(job->leaks) ||
	    !stack_cache_wants_results(job->cache, growth) ||
	    results_bytes(job->leaks) > SAVE_MOST || !stack_cache_open_results(job->cache, growth))
		return;
	results_save(job->leaks, job->growth, &results);
	stack_cache_keep_results(job->cache, job->trace, &results, growth);
	save_release(&results);
}
