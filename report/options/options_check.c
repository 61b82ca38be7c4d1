/* options_check.c - which options of a report go together */
#include <errno.h>
#include <string.h>

#include "mleak.h"
#include "report/options/options.h"

/* How many of the tables in place of stacks are requested. */
static int nr_tables(const struct report_opts *opts)
{
	return (opts->by != GROUP_NONE) + opts->growth + opts->timeline;
}

/* Each of these says what is wrong, or NULL. */

static const char *check_difference(const struct report_opts *opts)
{
	bool known = opts->format == FORMAT_TREE || opts->format == FORMAT_CSV ||
		     opts->format == FORMAT_FOLDED || opts->format == FORMAT_JSON ||
		     opts->format == FORMAT_HTML;

	if (opts->before && (opts->view.cost || nr_tables(opts) || opts->dump || !known))
		return "a difference shows what is outstanding, as text or with --folded or "
		       "--format=csv, json or html";
	if (opts->before && opts->before != opts->path && !strcmp(opts->before, "-") &&
	    !strcmp(opts->path, "-"))
		return "the standard input has one trace: name a file for the other";
	if (!opts->before && opts->choice.moments)
		return "--at takes two moments only for a difference: mleak diff --at A,B FILE";
	if (opts->before == opts->path && !opts->choice.until_mark &&
	    !opts->choice.until_before_mark && opts->choice.until_ns < opts->choice.until_before_ns)
		return "--at takes two moments of one trace in their order: the earlier one first";
	if (!opts->before && opts->choice.pid_before)
		return "--pid takes two processes, one of each trace, only for a difference";
	return NULL;
}

/* Each of them says until when, so the last one would win. */
static const char *check_times(const struct report_opts *opts)
{
	return opts->at && opts->between ? "--at and --between both choose the end of the examined "
					   "time: give one of them"
					 : NULL;
}

static const char *check_tables(const struct report_opts *opts)
{
	int tables = nr_tables(opts);

	if (tables > 1)
		return "--by, --growth and --timeline cannot be combined: give one of them";
	if (opts->timeline && opts->view.top)
		return "--timeline is a sum of all stacks and takes no --top; select stacks with "
		       "--function, --module and others";
	if (tables && opts->format != FORMAT_TREE && opts->format != FORMAT_CSV &&
	    opts->format != FORMAT_JSON)
		return "--by, --growth and --timeline print text, csv or json: leave other formats "
		       "out";
	return NULL;
}

/* A tree and folded stacks can begin at either end. */
static const char *check_inverted(const struct report_opts *opts)
{
	if (opts->view.inverted &&
	    ((opts->format != FORMAT_TREE && opts->format != FORMAT_FOLDED) || nr_tables(opts) ||
	     opts->before || opts->dump || opts->find_addr))
		return "--inverted works only for the tree and --folded";
	return NULL;
}

static const char *check_cost(const struct report_opts *opts)
{
	bool lists =
		(opts->format == FORMAT_JSON || opts->format == FORMAT_CSV) && !nr_tables(opts);

	if (opts->view.cost == COST_BLOCKS && !nr_tables(opts) &&
	    (opts->format == FORMAT_TREE || opts->format == FORMAT_FLAT))
		lists = true;
	if (opts->view.cost != COST_OUTSTANDING && opts->format != FORMAT_FOLDED && !lists)
		return "--cost works only with --folded, --format=json and --format=csv, which "
		       "list stacks, and --cost blocks also with a tree or --flat";
	if (opts->temporary_ns && opts->view.cost != COST_TEMPORARY && !lists)
		return "--temporary works only with --folded --cost temporary, and the formats "
		       "json and csv";
	return NULL;
}

static const char *check_fail_on(const struct report_opts *opts)
{
	if (!opts->fail_on_growing)
		return NULL;
	if (opts->find_addr || opts->dump)
		return "--fail-on growing needs a report: leave --addr and --dump out";
	if (opts->format == FORMAT_HEAPTRACK || format_wants_verdict(opts->format))
		return "--fail-on growing goes with no --format=heaptrack, junit or github: leave "
		       "one of them out";
	if (opts->choice.from_ns)
		return "--fail-on growing judges the time from the start of the recording: leave "
		       "--between out, or let it begin at 0";
	if (opts->view.top && !opts->by && !opts->growth)
		return "--fail-on growing looks at all stacks: leave --top out, or give --growth";
	return NULL;
}

bool report_opts_tell_verdicts(const struct report_opts *opts)
{
	if (opts->verdicts || opts->why || opts->fail_on_lost || opts->view.cost == COST_LOST)
		return true;
	return !opts->before && !opts->dump && !opts->find_addr && !opts->resident &&
	       format_has_verdicts(opts->format);
}

static const char *check_starts(const struct report_opts *opts)
{
	if (report_opts_tell_verdicts(opts))
		return NULL;
	if (opts->starts_only)
		return "--start-pointers-only is for verdicts, of which this prints none: give "
		       "--lost or --verdict, too";
	return opts->nr_roots ? "--root is for verdicts, of which this prints none: give --lost or "
				"--verdict, too"
			      : NULL;
}

static const char *check_names(const struct report_opts *opts)
{
	if (opts->view.addresses && opts->view.sieve.function)
		return "--function matches names, and --addresses shows none; give one of them";
	if (opts->view.addresses && opts->view.offsets)
		return "--offsets follow names, and --addresses shows none; give one of them";
	return NULL;
}

/* Does anything choose blocks or stacks, but --at and --pid? */
static bool chooses_more(const struct report_opts *opts)
{
	const struct block_filter *choice = &opts->choice;
	const struct stack_filter_opts *sieve = &opts->view.sieve;

	return choice->thread || choice->older_ns || choice->from_ns || choice->from_mark ||
	       opts->verdicts || opts->suppressions || opts->view.top || sieve->module ||
	       sieve->function || sieve->by_id || sieve->min_bytes || sieve->min_blocks;
}

static const char *check_addr(const struct report_opts *opts)
{
	if (!opts->find_addr)
		return opts->around ? "--around is about an address: give it with --addr" : NULL;
	if (opts->fail_on_leak)
		return "--addr does not look for leaks, and so takes no --fail-on-leak";
	if (nr_tables(opts) || opts->before || opts->dump ||
	    (opts->format != FORMAT_TREE && opts->format != FORMAT_JSON))
		return "--addr prints text, or JSON with --format=json, in place of a report";
	if (chooses_more(opts))
		return "--addr searches all blocks: of the options that select blocks it takes "
		       "only --at and --pid";
	return NULL;
}

static const char *check_resident(const struct report_opts *opts)
{
	struct report_opts others = *opts;

	others.view.top = 0;
	if (!opts->resident)
		return NULL;
	if (opts->fail_on_leak)
		return "--resident does not look for leaks, and so takes no --fail-on-leak";
	if (nr_tables(opts) || opts->before || opts->dump || opts->find_addr ||
	    (opts->format != FORMAT_TREE && opts->format != FORMAT_JSON))
		return "--resident prints text, or JSON with --format=json, in place of a report";
	if (chooses_more(&others))
		return "--resident is about all blocks: of the options that select some it takes "
		       "only --at, --pid and --top";
	return NULL;
}

static const char *check_why(const struct report_opts *opts)
{
	if (opts->why && opts->format != FORMAT_TREE && opts->format != FORMAT_JSON)
		return "mleak why prints text, or JSON with --format=json";
	return NULL;
}

static const char *check_lost(const struct report_opts *opts)
{
	if (opts->fail_on_lost && opts->before)
		return "--fail-on-leak=lost is of one trace: 'mleak report --fail-on-leak=lost'";
	if (opts->fail_on_lost && opts->verdicts)
		return "--fail-on-leak=lost looks at all verdicts: leave --verdict and --lost out";
	if (opts->fail_on_lost && format_wants_verdict(opts->format))
		return "--fail-on-leak=lost goes with no --format=junit or github: give --lost and "
		       "--fail-on-leak with these";
	return NULL;
}

/* --dump is of the file, not of what its events amount to. */
static const char *check_dump(const struct report_opts *opts)
{
	if (!opts->dump)
		return NULL;
	if (opts->fail_on_leak || opts->strict)
		return "--dump prints the records and does not look for leaks: give --fail-on-leak "
		       "and --strict without it";
	if (opts->format != FORMAT_TREE || nr_tables(opts) || opts->view.cost)
		return "--dump has a text format of its own: leave other formats and tables out";
	if (chooses_more(opts) || opts->choice.pid || opts->choice.until)
		return "--dump prints all records: leave out options that select some of them";
	return NULL;
}

int report_opts_check(const struct report_opts *opts)
{
	static const char *(*const checks[])(const struct report_opts *opts) = {
		check_times,  check_difference, check_cost,	check_tables, check_inverted,
		check_names,  check_addr,	check_resident, check_dump,   check_fail_on,
		check_starts, check_why,	check_lost,
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		const char *wrong = checks[i](opts);

		if (wrong) {
			log_error("%s", wrong);
			return -EINVAL;
		}
	}
	return 0;
}
