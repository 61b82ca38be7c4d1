/* report_run.c - see report_run.h */
#include "report/report_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/memory.h"
#include "report/base/text.h"
#include "report/context/older_stacks.h"
#include "report/context/print_overruns.h"
#include "report/context/sampling_text.h"
#include "report/context/stack_verdicts.h"
#include "report/kernel_file.h"
#include "report/output/print_address.h"
#include "report/stats/heaptrack_events.h"
#include "report/stats/stack_times.h"
#include "report/stats/thread_accounts.h"
#include "report/terminal/progress_line.h"
#include "report/trace/address_spaces.h"
#include "report/trace/open_trace.h"
#include "report/trace_facts.h"
#include "report/warnings.h"

#define GROWTH_SHARE 4 /* part of the allowed memory that may be taken to say what grows */

/* Name the stacks that are to be shown. */
static int make_view(struct report_run *job, const struct view_opts *opts)
{
	struct symbols_source source = {.dw = job->leaks->dw, .images = job->leaks->images};
	int err;

	if (job->debuginfod)
		dwunw_debug_fetch_set(source.dw, debuginfod_fetch, job->debuginfod);
	err = view_new(&job->view, job->leaks->stacks, &source, opts);
	if (!err)
		err = overruns_names(&job->overrun_names, job->leaks, &source, opts);
	dwunw_debug_fetch_set(source.dw, NULL, NULL);
	if (!err)
		warn_of_names(source.dw);
	return err;
}

static int load_suppressions(struct report_run *job)
{
	const char *path = job->opts->suppressions;
	char *shown = text_escape(path);
	size_t line = 0;
	int err = suppressions_new(&job->suppressions);

	if (!err)
		err = suppressions_load(job->suppressions, path, &line);
	if (err == -EINVAL)
		log_error("'%s' line %zu is not a suppression: write leak:PATTERN", shown, line);
	else if (err)
		log_error("cannot read '%s': %s", shown, strerror(-err));
	free(shown);
	return err ? EXIT_USAGE : EXIT_OK;
}

int report_run_explain_read(const struct report_run *job, int err)
{
	/* a thread was refused its stack */
	if (err == -ENOMEM || err == -EAGAIN) {
		memory_explain(job->shown);
		return EXIT_FAILED;
	}
	log_error("cannot read '%s' at byte %" PRIu64 ": %s", job->shown,
		  mlk_reader_offset(job->trace), mlk_strerror(err));
	return EXIT_USAGE;
}

int report_run_explain_make(const struct report_run *job, int err)
{
	if (err == -ENOMEM)
		memory_explain(job->shown);
	else
		log_error("cannot make the report: %s", mlk_strerror(err));
	return EXIT_FAILED;
}

/* Does the report say beside its stacks what grows?  A difference compares it where both sides were
 * attached to. */
static bool tells_growth(const struct report_run *job)
{
	const struct report_opts *opts = job->opts;
	bool stacks = opts->format == FORMAT_TREE || opts->format == FORMAT_FLAT;

	if (job->without_growth || opts->by || opts->growth || opts->timeline || opts->find_addr ||
	    opts->resident || opts->why)
		return false;
	if (!opts->before)
		return stacks || opts->format == FORMAT_HTML;
	return !mlk_reader_meta(job->trace)->whole_life &&
	       (stacks || opts->format == FORMAT_CSV || opts->format == FORMAT_JSON);
}

/* Is the report a page, with a table of threads?  Memory may be too short for that. */
static bool has_page_of_threads(const struct report_run *job)
{
	return job->opts->format == FORMAT_HTML && tells_growth(job) && !job->opts->before;
}

/* Can the report do without what is said of growth? */
static bool can_leave_out_growth(const struct report_run *job)
{
	return tells_growth(job) && !job->opts->before && !job->opts->fail_on_growing;
}

/* Forget all that the replay told so far. */
static void forget_replay(struct report_run *job)
{
	growth_free(job->growth);
	stack_times_free(job->times);
	thread_accounts_free(job->accounts);
	heaptrack_events_free(job->events);
	address_history_free(job->holders);
	replay_free(job->leaks);
	job->growth = NULL;
	job->times = NULL;
	job->accounts = NULL;
	job->events = NULL;
	job->holders = NULL;
	job->leaks = NULL;
}

/* Was memory short with what is said beside stacks?  That must not cost the report. */
static bool gives_up_growth(struct report_run *job, int err)
{
	if (err != -ENOMEM || !job->growth || !can_leave_out_growth(job))
		return false;
	forget_replay(job);
	job->without_growth = true;
	return true;
}

/* Was the cache of another trace?  Then the stacks are unwound. */
static bool gives_up_cache(struct report_run *job, int err)
{
	if (err != MLK_E_CACHE)
		return false;
	forget_replay(job);
	stack_cache_refuse(job->cache);
	return true;
}

static void note_change(void *arg, const struct live_change *change)
{
	struct report_run *job = arg;

	if (job->growth)
		growth_changed(job->growth, change);
	if (job->accounts)
		thread_accounts_changed(job->accounts, change);
	if (job->times)
		stack_times_changed(job->times, change);
}

/* Have the replay say what --growth, the tree and a page tell of time.  Returns 0 or -ENOMEM. */
static int watch_growth(struct report_run *job, struct live_watch *watch)
{
	bool page = job->opts->format == FORMAT_HTML && !job->opts->before;
	int err = growth_new(&job->growth);

	/* a timeline shows RSS, which grows also where nothing is allocated */
	if (!err)
		job->growth->start_ns = mlk_reader_meta(job->trace)->start_ns;

	if (!err && page && !job->times)
		err = stack_times_new(&job->times, mlk_reader_meta(job->trace)->start_ns);
	*watch = (struct live_watch){.changed = note_change, .arg = job};
	if (!err && can_leave_out_growth(job))
		job->growth->most_bytes = memory_allowed() / GROWTH_SHARE;
	if (!err && job->opts->nr_threads != 1)
		growth_use_thread(job->growth);
	return err;
}

/* Have the replay tell what the report shows beside its sums.  Returns an exit status. */
static int watch_replay(struct report_run *job, struct replay_opts *opts)
{
	int err = 0;

	if (job->opts->format == FORMAT_HEAPTRACK) {
		err = heaptrack_events_new(&job->events, mlk_reader_meta(job->trace)->start_ns);
		if (err) {
			log_error("cannot make a temporary file: %s", strerror(-err));
			return EXIT_FAILED;
		}
		/* its lines are in the order of the changes */
		opts->watch = (struct live_watch){
			.changed = heaptrack_events_changed, .arg = job->events, .in_order = true};
	}
	if (job->opts->growth || job->opts->timeline || job->opts->fail_on_growing ||
	    tells_growth(job))
		err = watch_growth(job, &opts->watch);
	if (!err && (group_is_threads(job->opts->by) || has_page_of_threads(job))) {
		err = thread_accounts_new(&job->accounts);
		opts->watch = (struct live_watch){.changed = note_change, .arg = job};
		opts->accounts = job->accounts;
	}
	if (!err && job->opts->find_addr) {
		err = address_history_new(&job->holders, job->opts->addr);
		opts->holders = job->holders;
	}
	return err ? report_run_explain_read(job, err) : EXIT_OK;
}

int report_run_replay(struct report_run *job)
{
	struct progress_line meter;
	struct replay_opts opts = {
		.debug_dirs = job->opts->debug_dirs,
		.nr_debug_dirs = job->opts->nr_debug_dirs,
		.symfs = job->opts->symfs,
		.temporary_ns = job->opts->temporary_ns,
		.mangled = job->opts->no_demangle,
		.choice = job->opts->choice,
		.nr_threads = job->opts->nr_threads,
		.progress = progress_line_move,
		.progress_arg = &meter,
	};
	int err, status = watch_replay(job, &opts);

	if (status != EXIT_OK)
		return status;
	err = report_run_find_cache(job);
	if (err)
		return report_run_explain_read(job, err);
	opts.cache = job->cache;
	opts.plain = job->plain;
	opts.growth = job->growth;
	progress_line_begin(&meter, mlk_reader_size(job->trace), !job->opts->quiet);
	verdict_choice_use(&job->verdict, &opts.choice, mlk_reader_meta(job->trace)->start_ns);
	err = replay_collect(&job->leaks, job->trace, &opts);
	progress_line_end(&meter);
	if (!err)
		err = older_stacks_add(job->leaks, &job->verdict);
	if (!err && !job->opts->no_embedded)
		err = embedded_suppressions_add(&job->suppressions, job->leaks);
	if (!err && job->growth)
		err = growth_finish(job->growth, job->leaks->live, &job->leaks->chosen,
				    replay_older_unsized(job->leaks, mlk_reader_meta(job->trace)));
	if (!err && job->accounts)
		err = thread_accounts_finish(job->accounts);
	if (gives_up_growth(job, err) || gives_up_cache(job, err))
		return report_run_replay(job);
	if (!err && job->times)
		err = stack_times_finish(job->times, job->leaks->chosen.end_ns);
	if (!err && job->verdict.verdicts && !job->opts->why)
		err = stack_verdicts_new(&job->by_verdict, job->leaks, job->verdict.verdicts);
	return err ? report_run_explain_read(job, err) : EXIT_OK;
}

int report_run_open(struct report_run *job, const struct report_opts *opts, const char *path,
		    const struct report_run *same)
{
	int err;

	job->opts = opts;
	job->path = path;
	job->shown = text_escape(path);
	if (!job->shown) {
		log_error("cannot read the options: %s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	err = opts->debuginfod ? debuginfod_new(&job->debuginfod) : 0;
	if (err)
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	if (!same)
		return open_trace(&job->trace, path, job->shown);
	job->is_second = true;
	err = mlk_reader_clone(&job->trace, same->trace);
	return err ? report_run_explain_make(job, err) : EXIT_OK;
}

/* Say that there is no process @pid, and which there are. */
static void explain_process(const struct report_run *job, uint32_t pid)
{
	char *all = processes_list(job->leaks->processes, job->leaks->live);
	char *list = all ? text_escape(all) : NULL;
	bool difference = job->opts->before && !job->opts->choice.pid_before;

	log_error("no process %" PRIu32 " in '%s'%s%s%s", pid, job->shown,
		  list && *list ? ", which has " : "", list ? list : "",
		  difference ? "; for a difference --pid takes two processes, as BEFORE,AFTER"
			     : "");
	free(list);
	free(all);
}

/* Is there what --pid asks for? */
static bool has_process(const struct report_run *job)
{
	uint32_t pid = job->opts->choice.pid;
	struct live_totals totals;

	if (!pid || processes_totals(job->leaks->live, pid, &totals))
		return true;
	explain_process(job, pid);
	return false;
}

int report_run_collect(struct report_run *job)
{
	int status = !has_what_is_asked(job)   ? EXIT_USAGE
		     : job->opts->suppressions ? load_suppressions(job)
					       : EXIT_OK;

	if (status == EXIT_OK)
		status = report_run_verdicts(job);
	if (status == EXIT_OK)
		status = report_run_replay(job);
	if (status == EXIT_OK)
		status = kernel_file_use(job);
	if (status != EXIT_OK)
		return status;
	if (job->without_growth)
		warn_of_no_growth();
	if (!has_process(job))
		return EXIT_USAGE;
	warn_of_trace(job);
	return EXIT_OK;
}

int report_run_view(struct report_run *job, const struct view_opts *view, bool places)
{
	struct view_opts opts = *view;
	int err;

	opts.sieve.suppressions = job->suppressions;
	opts.live = job->leaks->live;
	opts.processes = job->leaks->processes;
	err = make_view(job, &opts);
	if (!err && places)
		err = places_new(&job->places, job->view);
	return err ? report_run_explain_make(job, err) : EXIT_OK;
}

/* Read the trace once more: what is mapped at the address is of interest here alone. */
static int find_places(const struct report_run *job, struct address_places *places)
{
	struct mlk_reader *trace;
	int err = mlk_reader_clone(&trace, job->trace);

	if (!err)
		mlk_reader_rewind(trace, MLK_RECORD_EVENT | MLK_RECORD_MAPS | MLK_RECORD_REGIONS |
						 MLK_RECORD_PASS);
	if (!err)
		err = address_places_find(places, trace, job->leaks->images, job->opts->addr,
					  job->leaks->chosen.end_ns);
	mlk_reader_free(trace);
	return err;
}

int report_run_address(struct report_run *job)
{
	struct address_places places = {0};
	struct address_source source = {.path = job->path,
					.meta = mlk_reader_meta(job->trace),
					.leaks = job->leaks,
					.holders = job->holders,
					.pid = job->opts->choice.pid,
					.places = &places,
					.around = job->opts->around};
	struct symbols_source names = {.dw = job->leaks->dw, .images = job->leaks->images};
	struct address *address;
	int err = find_places(job, &places);

	if (err) {
		address_places_release(&places);
		return report_run_explain_read(job, err);
	}
	if (job->debuginfod)
		dwunw_debug_fetch_set(names.dw, debuginfod_fetch, job->debuginfod);
	err = address_new(&address, &source, &names, &job->opts->view);
	dwunw_debug_fetch_set(names.dw, NULL, NULL);
	if (err) {
		address_places_release(&places);
		return report_run_explain_make(job, err);
	}
	warn_of_names(names.dw);
	if (job->opts->format == FORMAT_JSON)
		print_address_json(stdout, address);
	else
		print_address(stdout, address);
	address_free(address);
	address_places_release(&places);
	return EXIT_OK;
}

struct report_data report_run_export(const struct report_run *job)
{
	return (struct report_data){
		.path = job->path,
		.meta = mlk_reader_meta(job->trace),
		.choice = &job->opts->choice,
		.leaks = job->leaks,
		.view = job->view,
		.places = job->places,
		.overrun_names = job->overrun_names,
		.suppressions = job->suppressions,
		.growth = tells_growth(job) ? job->growth : NULL,
		.accounts = job->accounts,
		.times = job->times,
		.verdicts = job->verdict.verdicts,
		.by_verdict = job->by_verdict,
		.resident = job->resident,
	};
}

void report_run_release(struct report_run *job)
{
	stack_cache_free(job->cache);
	places_free(job->places);
	stack_names_free(job->overrun_names);
	view_free(job->view);
	replay_free(job->leaks);
	growth_free(job->growth);
	thread_accounts_free(job->accounts);
	stack_times_free(job->times);
	verdict_choice_release(&job->verdict);
	stack_verdicts_free(job->by_verdict);
	heaptrack_events_free(job->events);
	address_history_free(job->holders);
	residences_release(&job->residences);
	free(job->resident);
	suppressions_free(job->suppressions);
	mlk_reader_free(job->trace);
	debuginfod_free(job->debuginfod);
	free(job->shown);
	*job = (struct report_run){0};
}
