/* trace_facts.c - see trace_facts.h */
#include "report/trace_facts.h"

#include "mleak.h"
#include "report/context/sampling_text.h"

/* The lines of heaptrack's format are single allocations, without a weight; and what a thread did
 * between two events of a sample is not in it. */
static bool can_sample(const struct report_run *job)
{
	bool temporary = job->opts->view.cost == COST_TEMPORARY;
	char how[SAMPLE_TEXT_MAX];

	if ((job->opts->format != FORMAT_HEAPTRACK && !temporary) ||
	    !print_sampling_rate(how, mlk_reader_meta(job->trace)))
		return true;
	if (temporary)
		log_error("'%s' holds %s: whether a thread freed a block at once is not known",
			  job->shown, how);
	else
		log_error(
			"'%s' holds %s, which --format=heaptrack cannot express; use pprof or json",
			job->shown, how);
	return false;
}

/* Does the trace have the addresses that --addr looks for? */
static bool has_addresses(const struct report_run *job)
{
	const struct mlk_meta *meta = mlk_reader_meta(job->trace);

	if (!job->opts->find_addr || meta->dropped != MLK_DROPPED_ALL || meta->guarded)
		return true;
	log_error("'%s' has no addresses for --addr: 'mleak unwind --drop-raw' dropped them; use "
		  "the trace that it was made of",
		  job->shown);
	return false;
}

/* Does the trace have what --by sums up? */
static bool has_groups(const struct report_run *job)
{
	if (job->opts->by <= GROUP_PROCESS || mlk_reader_meta(job->trace)->of_kernel)
		return true;
	log_error("'%s' has no memory of the kernel, which alone is in caches, control groups and "
		  "pages by order and flags: give --by another of its words",
		  job->shown);
	return false;
}

bool has_what_is_asked(const struct report_run *job)
{
	return can_sample(job) && has_addresses(job) && has_groups(job);
}
