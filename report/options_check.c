/* options_check.c - which options of a report go together */
#include <errno.h>

#include "mleak.h"
#include "report/options.h"

/* --addr is of all blocks of all stacks. */
static bool chooses_more(const struct report_opts *opts)
{
	const struct choice *choice = &opts->choice;
	const struct sieve_opts *sieve = &opts->view.sieve;

	return choice->thread || choice->older_ns || choice->from_ns || opts->suppressions ||
	       opts->view.top || sieve->module || sieve->function || sieve->min_bytes ||
	       sieve->min_blocks;
}

int report_opts_check(const struct report_opts *opts)
{
	int tables = (opts->by != GROUP_NONE) + opts->growth + opts->timeline;
	bool plain = opts->format == FORMAT_TREE || opts->format == FORMAT_CSV;

	if (opts->before &&
	    (opts->view.cost || tables || opts->dump ||
	     (!plain && opts->format != FORMAT_FOLDED && opts->format != FORMAT_JSON))) {
		log_error("a difference is text, or with --folded, --format=csv or --format=json, "
			  "of what is outstanding");
		return -EINVAL;
	}
	if (opts->view.cost != COST_OUTSTANDING && (opts->format != FORMAT_FOLDED || tables)) {
		log_error("--cost is for --folded alone");
		return -EINVAL;
	}
	if (opts->temporary_ns && opts->view.cost != COST_TEMPORARY &&
	    opts->format != FORMAT_JSON && (opts->format != FORMAT_CSV || tables)) {
		log_error("--temporary is for --folded --cost temporary, and for the formats json "
			  "and csv");
		return -EINVAL;
	}
	if (tables > 1) {
		log_error("--by, --growth and --timeline are one at a time");
		return -EINVAL;
	}
	if (opts->timeline && opts->view.top) {
		log_error("--timeline is a sum of all stacks and takes no --top; --function, "
			  "--module and others choose among them");
		return -EINVAL;
	}
	if (tables && !plain) {
		log_error("--by, --growth and --timeline are for text, or with --format=csv");
		return -EINVAL;
	}
	if (opts->find_addr && (tables || opts->before || opts->dump || opts->fail_on_leak ||
				(opts->format != FORMAT_TREE && opts->format != FORMAT_JSON))) {
		log_error("--addr is for text, or with --format=json, and takes the place of a "
			  "report");
		return -EINVAL;
	}
	if (opts->find_addr && chooses_more(opts)) {
		log_error("--addr looks at all blocks: of what chooses among them it takes --at "
			  "and --pid");
		return -EINVAL;
	}
	return 0;
}
