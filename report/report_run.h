/* report_run.h - the steps from the path of a trace to what a format prints, and what is said on
 * stderr when one fails
 *
 * The steps return EXIT_OK or the exit status to end with; then it has been said why.
 */
#ifndef REPORT_REPORT_RUN_H
#define REPORT_REPORT_RUN_H

#include "report/context/verdict_choice.h"
#include "report/ledger/residence.h"
#include "report/name/debuginfod.h"
#include "report/options/options.h"

/* One trace, as far as the steps have come.  All zero is before the first. */
struct report_run {
	const struct report_opts *opts; /* borrowed, as is the path */
	const char *path;
	char *shown; /* the path, safe to print */
	struct mlk_reader *trace;
	struct debuginfod *debuginfod;
	struct suppressions *suppressions;
	struct heaptrack_events *events; /* for that format alone */
	struct growth *growth; /* for --growth, --timeline, and what is said beside stacks */
	bool without_growth;   /* which is not said, for lack of memory */
	struct address_history *holders;   /* for --addr */
	struct thread_accounts *accounts;  /* for --by thread */
	struct stack_times *times;	   /* for a page */
	struct verdict_choice verdict;	   /* by the pointers in the trace */
	struct stack_verdicts *by_verdict; /* of each stack, if there are verdicts */
	struct residences residences;	   /* for --resident, and a page */
	char *resident;			   /* what a page says of that; NULL: nothing */
	struct stack_cache *cache;	   /* NULL: there must be none */
	bool plain;			   /* the replay was one that a cache may keep */
	struct replay *leaks;
	struct view *view;
	struct stack_names *overrun_names;
	struct places *places;
	bool is_second; /* moment of a trace */
};

/* Open the trace at @path, or that of @same, if that is not NULL: another moment of it, which needs
 * no warnings of its own; @same must outlive it.  @job is to be released in any case. */
int report_run_open(struct report_run *job, const struct report_opts *opts, const char *path,
		    const struct report_run *same);

/* Replay it, and warn of what is wrong with it. */
int report_run_collect(struct report_run *job);

/* The replay alone. */
int report_run_replay(struct report_run *job);

/* For report_run_collect(), in report_cache.c: look for what is kept beside the trace, unless it is
 * none that has anything beside it; whatever watches the replay is known.  Returns 0 or -ENOMEM. */
int report_run_find_cache(struct report_run *job);

/* For report_run_collect(), in report_verdicts.c: judge the blocks by the pointers in the trace, if
 * it has any and the report tells of them. */
int report_run_verdicts(struct report_run *job);

/* Choose and name the stacks that are to be shown, as @view says, and if @places with their places.
 */
int report_run_view(struct report_run *job, const struct view_opts *view, bool places);

/* Report on the address that --addr names, in place of a report. */
int report_run_address(struct report_run *job);

/* For --resident, in report_resident.c: find where the memory of the processes was, and choose in
 * @choice the moment of it, before the replay; and report on that, in place of a report. */
int report_run_residences(struct report_run *job, struct block_filter *choice);
int report_run_resident(struct report_run *job);

/* For a page, in report_resident.c: the same as text for report_run_export(), if the trace says it.
 */
int report_run_resident_text(struct report_run *job);

/* What a format is made of, after report_run_view(). */
struct report_data report_run_export(const struct report_run *job);

/* Say that the trace cannot be read for @err. */
int report_run_explain_read(const struct report_run *job, int err);

/* Say that no report can be made of it for @err. */
int report_run_explain_make(const struct report_run *job, int err);

/* After all is printed, in report_cache.c: keep what the replay found for the next report, if there
 * is a cache. */
void report_run_keep(const struct report_run *job);

/* Release what @job holds. */
void report_run_release(struct report_run *job);

/* Read the command line, and print the help or have @run do what it asks for, as its exit status
 * says.  Returns the exit status; where it is not EXIT_OK, it has been said why. */
int command_run(int argc, char **argv, int (*run)(const struct report_opts *opts));

#endif
