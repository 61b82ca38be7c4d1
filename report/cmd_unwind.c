/* cmd_unwind.c - `mleak unwind`: unwind a trace once, and keep the stacks in it */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/cache.h"
#include "format/copy.h"
#include "format/place.h"
#include "mleak.h"
#include "report/base/text.h"
#include "report/dropped/drop_raw.h"
#include "report/dropped/keep_raw.h"
#include "report/report_run.h"
#include "report/terminal/progress_line.h"

#define ZSTD_LEVEL  1  /* as recorders do */
#define SMALL_LEVEL 12 /* of a trace that is made to be small */

/* The file that is being written; it gets its name when it is whole. */
static struct mlk_place place = {.fd = -1, .dir = -1};

struct unwinding {
	struct report_run job; /* its trace */
	struct stat st;	       /* of its file */
	char *path;	       /* of the trace that is written, behind links */
	char *shown;	       /* that, safe to print */
	bool in_place;
	struct mlk_copy *copy;
	struct keep_raw *keep;
	struct drop_raw *drop; /* NULL: all is kept */
	uint64_t nr_allocs;
	uint64_t nr_left; /* chunks whose stacks are too many for one */
	uint64_t skipped; /* bytes of the trace that belong to no whole chunk */
	int copy_err;
};

/* What was written so far is of no use to anybody. */
static void on_signal(int signal_number)
{
	mlk_place_forget(&place);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (signal(signals[i], on_signal) == SIG_IGN)
			signal(signals[i], SIG_IGN); /* as nohup wants it */
}

static int write_batch(struct unwinding *u, const struct replay *leaks, const struct batch *batch,
		       const uint32_t *ids)
{
	if (u->drop)
		return drop_raw_batch(u->drop, leaks, batch, ids);
	return keep_raw_batch(u->keep, leaks, batch, ids);
}

static int take_batch(void *arg, const struct replay *leaks, const struct batch *batch,
		      const uint32_t *ids)
{
	struct unwinding *u = arg;

	u->copy_err = mlk_copy_until(u->copy, batch->chunk.offset);
	if (u->copy_err || !(batch->chunk.records & MLK_RECORD_EVENT))
		return u->copy_err;
	for (size_t i = 0; i < batch->nr_events; i++)
		u->nr_allocs += batch->events[i].kind == MLK_ALLOC;
	u->copy_err = write_batch(u, leaks, batch, ids);
	if (u->copy_err == -EINVAL && !u->drop) {
		u->copy_err = 0;
		u->nr_left++;
	}
	return u->copy_err;
}

/* The new trace could not be written.  In place it has no name yet, and the trace has its own. */
static void explain_copy(const struct unwinding *u, int err)
{
	const char *slash = strrchr(u->path, '/');
	int folder = slash ? (int)(slash - u->path) + (slash == u->path) : 1;

	if (u->in_place)
		log_error("cannot write the unwound trace to a new file in '%.*s': %s; '%s' stays "
			  "as it was",
			  folder, slash ? u->path : ".", mlk_strerror(err), u->shown);
	else
		log_error("cannot copy '%s' to '%s': %s", u->job.shown, u->shown,
			  mlk_strerror(err));
}

/* Say why there is no trace with stacks. */
static int explain_error(const struct unwinding *u, int err)
{
	if (err == MLK_E_CORRUPT)
		log_error("cannot unwind '%s': it is damaged; 'mleak report' reads its whole "
			  "chunks as they are",
			  u->job.shown);
	else if (err == u->copy_err)
		explain_copy(u, err);
	else
		return report_run_explain_read(&u->job, err);
	return err == MLK_E_CORRUPT ? EXIT_USAGE : EXIT_FAILED;
}

/* Unwind all, and write it. */
static int unwind_all(struct unwinding *u)
{
	const struct report_opts *opts = u->job.opts;
	struct progress_line meter;
	struct replay_opts how = {
		.debug_dirs = opts->debug_dirs,
		.nr_debug_dirs = opts->nr_debug_dirs,
		.symfs = opts->symfs,
		.nr_threads = opts->nr_threads,
		.progress = progress_line_move,
		.progress_arg = &meter,
		.batch = take_batch,
		.batch_arg = u,
	};
	struct replay *leaks = NULL;
	int err;

	progress_line_begin(&meter, mlk_reader_size(u->job.trace), !opts->quiet);
	err = replay_collect(&leaks, u->job.trace, &how);
	progress_line_end(&meter);
	if (!err) {
		u->skipped = leaks->condition.bytes_skipped;
		err = leaks->condition.chunks_lost ? MLK_E_CORRUPT : 0;
	}
	if (!err && u->drop)
		err = u->copy_err = drop_raw_finish(u->drop, leaks);
	if (!err)
		err = u->copy_err = mlk_copy_finish(u->copy);
	replay_free(leaks);
	return err ? explain_error(u, err) : EXIT_OK;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Say why there is nothing to write to.  Returns the exit status. */
static int explain_place(const struct unwinding *u, int err)
{
	if (err > MLK_E_MAGIC) {
		log_error("cannot create '%s': %s", u->shown, mlk_strerror(err));
		return EXIT_FAILED;
	}
	if (err == MLK_E_OTHER)
		log_error("'%s' is another file now, and was not replaced; try again", u->shown);
	else
		log_error("cannot write '%s'%s: %s; give another name with -o", u->shown,
			  place.of_old ? " (the existing file would be kept with the suffix '.old')"
				       : "",
			  mlk_strerror(err));
	return EXIT_USAGE;
}

/* What is to be replaced; NULL: what has the name of the new trace is kept. */
static const struct stat *replaced(const struct unwinding *u)
{
	return u->in_place ? &u->st : NULL;
}

/* Let those users read the new file who could read the trace, and no others. */
static void set_access(const struct unwinding *u)
{
	mode_t mode = u->st.st_mode & 0777;

	/* only root may give a file away, but a member of a group may give it to that group */
	if (fchown(place.fd, u->st.st_uid, u->st.st_gid) &&
	    fchown(place.fd, (uid_t)-1, u->st.st_gid))
		mode &= ~(mode_t)070;
	(void)!fchmod(place.fd, mode);
}

/* Give the file its name. */
static int commit_trace(const struct unwinding *u)
{
	int err;

	set_access(u);
	err = fsync(place.fd) ? -errno : mlk_place_take(&place, replaced(u));
	if (!err)
		mlk_cache_remove(place.dir, place.name); /* it has its stacks itself */
	return err ? explain_place(u, err) : EXIT_OK;
}

static void report_unwound(const struct unwinding *u)
{
	char allocs[TEXT_NUMBER_MAX], now[TEXT_NUMBER_MAX], before[TEXT_NUMBER_MAX];

	if (u->skipped)
		log_warn("'%s' was cut: %" PRIu64 " bytes belong to no whole chunk, and were left "
			 "out",
			 u->job.shown, u->skipped);
	if (u->nr_left)
		log_warn("the stacks of %" PRIu64
			 " %s too long to be stored: each report unwinds them again",
			 u->nr_left, u->nr_left == 1 ? "chunk are" : "chunks are");
	if (u->job.opts->quiet)
		return;
	log_info("unwound the stack%s of %s allocation%s; '%s' has %s bytes, '%s' had %s",
		 u->nr_allocs == 1 ? "" : "s", text_number(allocs, u->nr_allocs),
		 u->nr_allocs == 1 ? "" : "s", u->shown, text_number(now, mlk_copy_bytes(u->copy)),
		 u->job.shown, text_number(before, mlk_reader_size(u->job.trace)));
}

/* A trace without its end may be growing: then its recorder must not lose the file. */
static int check_whole(const struct unwinding *u)
{
	struct mlk_record record;
	int more;

	if (!u->in_place)
		return EXIT_OK;
	mlk_reader_rewind(u->job.trace, 0);
	while ((more = mlk_reader_next(u->job.trace, &record)) > 0)
		;
	if (more < 0)
		return report_run_explain_read(&u->job, more);
	if (mlk_reader_condition(u->job.trace)->ended)
		return EXIT_OK;
	log_error("'%s' was cut, or is still being recorded: name another file to write with -o",
		  u->job.shown);
	return EXIT_USAGE;
}

/* Is there what is to be unwound, or dropped? */
static int check_raw(const struct unwinding *u)
{
	const struct mlk_meta *meta = mlk_reader_meta(u->job.trace);

	if (meta->dropped)
		log_error("'%s' cannot be unwound again: its registers and stacks were dropped by "
			  "--drop-raw",
			  u->job.shown);
	else if (u->job.opts->drop_raw && meta->of_kernel)
		log_error("'%s' is of the kernel's memory, whose stacks are not raw: leave "
			  "--drop-raw out",
			  u->job.shown);
	else
		return EXIT_OK;
	return EXIT_USAGE;
}

/* The path to write to.  A trace that is to be replaced is so behind links, which stay; a file that
 * is named must be none. */
static char *target_of(const struct report_opts *opts)
{
	char *real = opts->output ? NULL : realpath(opts->path, NULL);

	return real ? real : strdup(opts->output ? opts->output : opts->path);
}

/* What is to be written where. */
static int find_place(struct unwinding *u)
{
	const struct report_opts *opts = u->job.opts;
	struct stat st;
	int err;

	if (!opts->output && !strcmp(opts->path, "-")) {
		log_error("a trace from the standard input replaces no file: name one with -o");
		return EXIT_USAGE;
	}
	u->path = target_of(opts);
	u->shown = text_escape(opts->output ? opts->output : opts->path);
	err = u->path && u->shown ? mlk_reader_stat(u->job.trace, &u->st) : -ENOMEM;
	if (err) {
		log_error("cannot read '%s': %s", u->job.shown, strerror(-err));
		return EXIT_FAILED;
	}
	u->in_place = !opts->output || (!lstat(u->path, &st) && is_same(&st, &u->st));
	err = check_whole(u);
	if (err != EXIT_OK)
		return err;
	err = check_raw(u);
	if (err != EXIT_OK)
		return err;
	catch_signals();
	err = mlk_place_open(&place, u->path, replaced(u));
	return err ? explain_place(u, err) : EXIT_OK;
}

static int write_trace(struct unwinding *u)
{
	bool drops = u->job.opts->drop_raw;
	int err = u->copy_err =
		mlk_copy_new(&u->copy, u->job.trace, place.fd, drops ? SMALL_LEVEL : ZSTD_LEVEL,
			     drops ? drop_raw_parts(mlk_reader_meta(u->job.trace)) : MLK_COPY_ALL);
	int status;

	if (!err)
		err = u->copy_err = drops ? drop_raw_new(&u->drop, u->copy, u->job.trace)
					  : keep_raw_new(&u->keep, u->copy);
	status = err ? explain_error(u, err) : unwind_all(u);

	if (status == EXIT_OK)
		status = commit_trace(u);
	if (status == EXIT_OK)
		report_unwound(u);
	return status;
}

static int unwind(const struct report_opts *opts)
{
	struct unwinding u = {0};
	int status = report_run_open(&u.job, opts, opts->path, NULL);

	if (status == EXIT_OK)
		status = find_place(&u);
	if (status == EXIT_OK)
		status = write_trace(&u);
	drop_raw_free(u.drop);
	keep_raw_free(u.keep);
	mlk_copy_free(u.copy);
	mlk_place_close(&place);
	report_run_release(&u.job);
	free(u.path);
	free(u.shown);
	return status;
}

int cmd_unwind(int argc, char **argv)
{
	return command_run(argc, argv, unwind);
}
