/* cmd_report.c - `mleak report`: read a trace, find what is outstanding, print it */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <poll.h>

#include "mleak.h"
#include "report/debuginfod.h"
#include "report/dump.h"
#include "report/export.h"
#include "report/heaptrack_events.h"
#include "report/options.h"
#include "report/spaces.h"
#include "report/text.h"

/* Say why the trace cannot be opened, and what to do.  @path is safe to print. */
static void explain_open(const char *path, int err)
{
	switch (err) {
	case -ENOENT:
		log_error("cannot open '%s': %s; record one with 'mleak record -o %s -p PID'", path,
			  strerror(ENOENT), path);
		break;
	case -EISDIR:
		log_error("cannot open '%s': it is a directory; name the trace in it", path);
		break;
	case -EINVAL:
		log_error("cannot open '%s': it is not a regular file; copy the trace to one",
			  path);
		break;
	case MLK_E_MAGIC:
		log_error("'%s' is not a mleak trace (it does not begin with the trace's magic "
			  "bytes)",
			  path);
		break;
	case MLK_E_VERSION:
		log_error("'%s' has a later version of the format than this mleak (" MLEAK_VERSION
			  ") knows; read it with the mleak that wrote it",
			  path);
		break;
	case MLK_E_HEADER:
		log_error(
			"'%s' cannot be read: the header of the trace is damaged; copy it again or "
			"record anew",
			path);
		break;
	case MLK_E_EMPTY:
		log_error("'%s' cannot be read: the trace was cut before its first whole chunk; "
			  "copy it again or record anew",
			  path);
		break;
	default:
		log_error("cannot open '%s': %s", path, mlk_strerror(err));
	}
}

/* Warn of everything that the trace does not hold any more. */
static void warn_of_damage(const char *path, const struct mlk_condition *condition,
			   uint64_t start_ns)
{
	char when[80] = "";

	if (condition->lost_to_ns)
		snprintf(when, sizeof(when), " (between %.3f s and %.3f s of the recording)",
			 (double)(int64_t)(condition->lost_from_ns - start_ns) / 1e9,
			 (double)(int64_t)(condition->lost_to_ns - start_ns) / 1e9);
	if (condition->chunks_lost)
		log_warn("'%s' is damaged: %" PRIu64
			 " of its chunks are lost%s, and with them frees "
			 "whose blocks may be reported as leaks",
			 path, condition->chunks_lost, when);
	if (condition->bytes_skipped)
		log_warn("'%s' is cut or damaged: %" PRIu64 " bytes belong to no whole chunk and "
			 "were skipped",
			 path, condition->bytes_skipped);
	if (condition->chunks_unknown)
		log_warn("'%s' holds %" PRIu64 " chunks of a kind unknown to this mleak "
			 "(" MLEAK_VERSION "), which were skipped",
			 path, condition->chunks_unknown);
	if (!condition->ended)
		log_warn("'%s' has no end: the recording was killed or the file was cut; this is "
			 "its "
			 "state at the last event",
			 path);
	else if (condition->reason == MLK_END_ERROR)
		log_warn("'%s' ends early: the recorder could not write on", path);
}

/* Warn of what the trace holds more of than this mleak takes in. */
static void warn_of_limits(const char *path, const struct leaks *leaks)
{
	size_t ignored = leaks_ignored_snapshots(leaks);

	if (ignored)
		log_warn("'%s' holds more than %zu executable mappings: %zu of its snapshots of "
			 "them were ignored, and stacks may be wrong or incomplete",
			 path, SPACES_MAX_MAPPINGS, ignored);
	if (images_overflown(leaks_images(leaks)))
		log_warn("'%s' names more than %u programs and libraries: the others are ignored, "
			 "and stacks in them incomplete",
			 path, IMAGES_MAX);
}

/* Folded stacks have no place for it, and a tree says it in its summary. */
static void warn_of_losses(const char *path, const struct mlk_losses *losses)
{
	uint64_t total = 0;

	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (kind != MLK_LOST_MODULE)
			total += losses->count[kind];
	if (total)
		log_warn("%" PRIu64 " events were lost while '%s' was recorded; the report without "
			 "--format lists them",
			 total, path);
}

/* Has the reader at the other end of the pipe or socket gone? */
static bool is_output_closed(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

/* Make sure that all of the report went out.  Whoever closed the pipe has read enough. */
static int finish_output(void)
{
	int err;

	errno = 0;
	if (fflush(stdout) != EOF && !ferror(stdout))
		return EXIT_OK;
	/* if the failed write was an earlier one, errno is lost */
	err = errno ? errno : EIO;
	if (err == EPIPE || is_output_closed())
		return EXIT_OK;
	log_error("cannot write the report: %s", strerror(err));
	return EXIT_FAILED;
}

/* Say of each module what stood in the way of its names. */
static void warn_of_names(const struct dwunw *dw)
{
	const char *path;

	for (uint32_t module = 0; (path = dwunw_module_path(dw, module)) != NULL; module++) {
		uint32_t notes = dwunw_module_notes(dw, module);
		char *shown = notes ? text_escape(path) : NULL;

		for (uint32_t note = 1; shown && note <= notes; note *= 2)
			if (notes & note)
				log_warn("some names or lines of '%s' are missing: %s", shown,
					 dwunw_note_text((enum dwunw_note)note));
		free(shown);
	}
}

/* Name the stacks that are to be shown. */
static int make_view(struct view **view, const struct view_opts *opts, const struct leaks *leaks,
		     struct debuginfod *debuginfod)
{
	struct names_source source = {.dw = leaks_unwinder(leaks), .images = leaks_images(leaks)};
	int err;

	if (debuginfod)
		dwunw_debug_fetch_set(source.dw, debuginfod_fetch, debuginfod);
	err = view_new(view, leaks_stacks(leaks), &source, opts);
	dwunw_debug_fetch_set(source.dw, NULL, NULL);
	if (!err)
		warn_of_names(source.dw);
	return err;
}

/* What a report is made of. */
struct job {
	const struct report_opts *opts;
	const char *shown; /* the path of the trace, safe to print */
	struct mlk_reader *trace;
	struct leaks *leaks;
	struct debuginfod *debuginfod;
	struct heaptrack_events *events; /* for that format alone */
	struct growth *growth;		 /* for --growth and --timeline */
	struct suppressions *suppressions;
};

static bool is_table(const struct report_opts *opts)
{
	return opts->by || opts->growth || opts->timeline;
}

static int print_stacks(const struct job *job, const struct export *export)
{
	const struct report_opts *opts = job->opts;
	struct table table = {
		.by = opts->by,
		.growth = job->growth,
		.timeline = opts->timeline,
		.csv = opts->format == FORMAT_CSV,
	};

	return is_table(opts) ? format_print_table(stdout, export, &table)
			      : format_print(stdout, opts->format, export, job->events);
}

/* Is more left than --fail-on-leak allows? */
static bool is_failure(const struct report_opts *opts, const struct export *export)
{
	struct live_amount amount = export_selected(export);

	return opts->fail_on_leak &&
	       (opts->fail_bytes ? amount.bytes > opts->fail_bytes : amount.blocks > 0);
}

static int print_report(const struct job *job)
{
	struct view_opts view_opts = job->opts->view;
	struct export export = {
		.path = job->opts->path,
		.meta = mlk_reader_meta(job->trace),
		.leaks = job->leaks,
		.suppressions = job->suppressions,
	};
	struct places *places = NULL;
	struct view *view;
	int err, status = EXIT_FAILED;

	view_opts.sieve.suppressions = job->suppressions;
	err = make_view(&view, &view_opts, job->leaks, job->debuginfod);
	if (!err && (is_table(job->opts) || format_wants_places(job->opts->format)))
		err = places_new(&places, view);
	export.view = view;
	export.places = places;
	if (!err)
		err = print_stacks(job, &export);
	if (!err)
		status = finish_output();
	if (status == EXIT_OK && is_failure(job->opts, &export))
		status = EXIT_FAILED;
	places_free(places);
	view_free(view);
	if (err)
		log_error("cannot make the report: %s", mlk_strerror(err));
	return status;
}

static int load_suppressions(struct job *job)
{
	const char *path = job->opts->suppressions;
	char *shown = text_escape(path);
	size_t line = 0;
	int err = suppressions_new(&job->suppressions);

	if (!err)
		err = suppressions_load(job->suppressions, path, &line);
	if (err == -EINVAL)
		log_error("'%s' line %zu is no suppression: it wants leak:PATTERN", shown, line);
	else if (err)
		log_error("cannot read '%s': %s", shown, strerror(-err));
	free(shown);
	return err ? EXIT_USAGE : EXIT_OK;
}

static int explain_read(const char *path, const struct mlk_reader *trace, int err)
{
	log_error("cannot read '%s' at byte %" PRIu64 ": %s", path, mlk_reader_offset(trace),
		  mlk_strerror(err));
	return err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
}

static int collect(struct job *job)
{
	struct leaks_opts opts = {
		.debug_dirs = job->opts->debug_dirs,
		.nr_debug_dirs = job->opts->nr_debug_dirs,
		.choice = job->opts->choice,
	};
	int err;

	if (job->opts->format == FORMAT_HEAPTRACK) {
		err = heaptrack_events_new(&job->events, mlk_reader_meta(job->trace)->start_ns);
		if (err) {
			log_error("cannot make a temporary file: %s", strerror(-err));
			return EXIT_FAILED;
		}
		opts.watch = (struct live_watch){heaptrack_events_changed, job->events};
	}
	if (job->opts->growth || job->opts->timeline) {
		err = growth_new(&job->growth);
		if (err)
			return explain_read(job->shown, job->trace, err);
		opts.watch = (struct live_watch){growth_changed, job->growth};
	}
	err = leaks_collect(&job->leaks, job->trace, &opts);
	if (!err && job->growth)
		err = growth_finish(job->growth, leaks_chosen(job->leaks)->end_ns);
	return err ? explain_read(job->shown, job->trace, err) : EXIT_OK;
}

static int report(struct job *job)
{
	const struct report_opts *opts = job->opts;
	int err, status;

	err = mlk_reader_open_file(&job->trace, opts->path);
	if (err) {
		explain_open(job->shown, err);
		return EXIT_USAGE;
	}
	if (opts->dump) {
		err = dump_trace(stdout, job->trace, opts->dump_stacks);
		return err ? explain_read(job->shown, job->trace, err) : finish_output();
	}
	status = opts->suppressions ? load_suppressions(job) : EXIT_OK;
	if (status == EXIT_OK)
		status = collect(job);
	if (status != EXIT_OK)
		return status;
	warn_of_damage(job->shown, leaks_condition(job->leaks),
		       mlk_reader_meta(job->trace)->start_ns);
	warn_of_limits(job->shown, job->leaks);
	if (opts->format != FORMAT_TREE)
		warn_of_losses(job->shown, &leaks_condition(job->leaks)->losses);
	return print_report(job);
}

/* Make the report on the trace, or say why not.  Returns the exit status. */
static int start(const struct report_opts *opts, const char *shown)
{
	struct job job = {.opts = opts, .shown = shown};
	int err = 0, status = EXIT_FAILED;

	if (opts->debuginfod)
		err = debuginfod_new(&job.debuginfod);
	if (err == -EINVAL)
		status = EXIT_USAGE;
	if (!err)
		status = report(&job);
	leaks_free(job.leaks);
	growth_free(job.growth);
	suppressions_free(job.suppressions);
	heaptrack_events_free(job.events);
	mlk_reader_free(job.trace);
	debuginfod_free(job.debuginfod);
	return status;
}

int cmd_report(int argc, char **argv)
{
	struct report_opts opts;
	int err, status = EXIT_FAILED;
	char *shown = NULL;

	/* `mleak report | head` is to end by finish_output(), not by the signal */
	signal(SIGPIPE, SIG_IGN);
	err = report_opts_parse(&opts, argc, argv);
	if (err) {
		status = err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
		if (err == -ENOMEM)
			log_error("cannot read the options: %s", strerror(ENOMEM));
		goto out;
	}
	if (opts.help) {
		report_opts_print_help();
		status = finish_output();
		goto out;
	}
	/* no library may go to the network by itself */
	if (!opts.debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	shown = text_escape(opts.path);
	if (shown)
		status = start(&opts, shown);
	else
		log_error("cannot read the options: %s", strerror(ENOMEM));
out:
	free(shown);
	report_opts_release(&opts);
	return status;
}
