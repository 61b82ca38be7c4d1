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
#include "report/leaks.h"
#include "report/options.h"
#include "report/print_filters.h"
#include "report/print_folded.h"
#include "report/print_summary.h"
#include "report/print_tree.h"
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
static void warn_of_losses(const char *path, const struct leaks *leaks)
{
	const struct mlk_losses *losses = &leaks_condition(leaks)->losses;
	struct live_amount suspect = leaks_suspect(leaks);
	uint64_t total = 0;

	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (kind != MLK_LOST_MODULE)
			total += losses->count[kind];
	if (total)
		log_warn("%" PRIu64 " events were lost while '%s' was recorded; the report without "
			 "--folded lists them",
			 total, path);
	if (suspect.blocks)
		log_warn("%" PRIu64 " of the outstanding blocks in '%s' (%" PRIu64
			 " bytes) lived while frees were lost: they may have been freed",
			 suspect.blocks, path, suspect.bytes);
}

/* Likewise. */
static void warn_of_sample(const char *path, const struct mlk_meta *meta)
{
	char how[SAMPLE_TEXT_MAX];

	if (print_filters_sample(how, meta))
		log_warn("'%s' holds %s: all bytes are estimates", path, how);
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
static int make_view(struct view **view, const struct report_opts *opts, const struct leaks *leaks,
		     struct debuginfod *debuginfod)
{
	struct names_source source = {.dw = leaks_unwinder(leaks), .images = leaks_images(leaks)};
	struct view_opts view_opts = opts->view;
	int err;

	view_opts.live = leaks_live(leaks);
	view_opts.processes = leaks_processes(leaks);
	if (debuginfod)
		dwunw_debug_fetch_set(source.dw, debuginfod_fetch, debuginfod);
	err = view_new(view, leaks_stacks(leaks), &source, &view_opts);
	dwunw_debug_fetch_set(source.dw, NULL, NULL);
	if (!err)
		warn_of_names(source.dw);
	return err;
}

static int print_report(const struct report_opts *opts, const struct mlk_meta *meta,
			const struct leaks *leaks, struct debuginfod *debuginfod)
{
	struct view *view;
	int err = make_view(&view, opts, leaks, debuginfod);

	if (err)
		goto out;
	if (opts->folded) {
		err = print_folded(stdout, leaks_comm(leaks), view);
	} else {
		err = print_summary(stdout, opts->path, meta, leaks, opts->view.pid);
	}
	if (!err && !opts->folded) {
		err = print_view_as_tree(stdout, view,
					 opts->view.inverted ? "innermost first" : "callers first");
	}
out:
	view_free(view);
	if (err)
		log_error("cannot make the report: %s", mlk_strerror(err));
	return err ? EXIT_FAILED : finish_output();
}

static int explain_read(const char *path, const struct mlk_reader *trace, int err)
{
	log_error("cannot read '%s' at byte %" PRIu64 ": %s", path, mlk_reader_offset(trace),
		  mlk_strerror(err));
	return err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
}

/* @shown is the path of the trace, safe to print. */
static int report(const struct report_opts *opts, const char *shown)
{
	struct debuginfod *debuginfod = NULL;
	struct mlk_reader *trace = NULL;
	struct leaks *leaks = NULL;
	struct live_totals totals;
	int err, status = EXIT_USAGE;

	if (opts->debuginfod && (err = debuginfod_new(&debuginfod)) != 0)
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	err = mlk_reader_open_file(&trace, opts->path);
	if (err) {
		explain_open(shown, err);
		goto out;
	}
	if (opts->dump) {
		err = dump_trace(stdout, trace, opts->dump_stacks);
		status = err ? explain_read(shown, trace, err) : finish_output();
		goto out;
	}
	err = leaks_collect(&leaks, trace, opts->debug_dirs, opts->nr_debug_dirs);
	if (err) {
		status = explain_read(shown, trace, err);
		goto out;
	}
	if (opts->view.pid && !processes_totals(leaks_live(leaks), opts->view.pid, &totals)) {
		log_error("no process %" PRIu32 " in '%s'; the report without --pid lists those "
			  "there are",
			  opts->view.pid, shown);
		goto out;
	}
	warn_of_damage(shown, leaks_condition(leaks), mlk_reader_meta(trace)->start_ns);
	warn_of_limits(shown, leaks);
	if (opts->folded) {
		warn_of_losses(shown, leaks);
		warn_of_sample(shown, mlk_reader_meta(trace));
	}
	status = print_report(opts, mlk_reader_meta(trace), leaks, debuginfod);
out:
	leaks_free(leaks);
	mlk_reader_free(trace);
	debuginfod_free(debuginfod);
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
		status = report(&opts, shown);
	else
		log_error("cannot read the options: %s", strerror(ENOMEM));
out:
	free(shown);
	report_opts_release(&opts);
	return status;
}
