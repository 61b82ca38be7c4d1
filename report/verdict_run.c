/* verdict_run.c - see verdict_run.h */
#include "report/verdict_run.h"

#include "mleak.h"
#include "report/reach/verdicts.h"

static bool is_wanted(const void *arg, const struct live_block *block)
{
	const struct report_run *job = arg;

	return job->opts->verdicts >> verdicts_of(job->verdicts, block) & 1;
}

/* Does the trace have a pass? That is told by its index. */
static int has_pass(struct mlk_reader *trace, bool *has)
{
	const struct mlk_entry *entries;
	size_t nr;
	int err = mlk_reader_list(trace, &entries, &nr);

	*has = false;
	for (size_t i = 0; i < nr && !*has; i++)
		*has = entries[i].records == MLK_RECORD_PASS;
	return err;
}

static bool tells(const struct report_opts *opts)
{
	return opts->verdicts || ((opts->format == FORMAT_TREE || opts->format == FORMAT_FLAT ||
				   opts->format == FORMAT_JSON) &&
				  !opts->before && !opts->dump && !opts->find_addr);
}

int verdict_run_find(struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	const struct block_filter *choice = &opts->choice;
	const uint64_t start_ns = mlk_reader_meta(job->trace)->start_ns;
	struct verdict_rules rules = {.starts_only = opts->starts_only, .stop_ns = UINT64_MAX};
	struct mlk_reader *trace = NULL;
	bool has = false;
	int err = 0;

	if (choice->until && choice->until_ns < UINT64_MAX - start_ns)
		rules.stop_ns = start_ns + choice->until_ns;
	if (tells(opts))
		err = has_pass(job->trace, &has);
	if (!err && has)
		err = mlk_reader_clone(&trace, job->trace);
	if (!err && has)
		err = verdicts_find(&job->verdicts, trace, &rules);
	mlk_reader_free(trace);
	if (err)
		return report_run_explain_read(job, err);
	if (!opts->verdicts || job->verdicts)
		return EXIT_OK;
	log_error("'%s' has no whole snapshot of the pointers in memory: record it with --reach",
		  job->shown);
	return EXIT_USAGE;
}

void verdict_run_choose(const struct report_run *job, struct block_filter *choice)
{
	if (!job->opts->verdicts)
		return;
	choice->only = is_wanted;
	choice->only_arg = job;
}
