/* cmd_unwind.c - `mleak unwind`: unwind a trace once, and keep the stacks in it */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/copy.h"
#include "mleak.h"
#include "report/command.h"
#include "report/job.h"
#include "report/meter.h"
#include "report/text.h"
#include "report/unwound.h"

#define ZSTD_LEVEL 1 /* as recorders do */

/* The file that is being written; it gets its name when it is whole. */
static char part[PATH_MAX];

struct unwinding {
	struct job job; /* its trace */
	struct stat st; /* of its file */
	char *path;	/* of the trace that is written, behind links */
	char *shown;	/* that, safe to print */
	int fd;
	struct mlk_copy *copy;
	struct unwound *stacks;
	uint64_t nr_allocs;
	uint64_t nr_left; /* chunks whose stacks are too many for one */
	uint64_t skipped; /* bytes of the trace that belong to no whole chunk */
	int copy_err;
};

/* What was written so far is of no use to anybody. */
static void on_signal(int signal_number)
{
	unlink(part);
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

static int gather(struct unwinding *u, const struct leaks *leaks, const struct batch *batch,
		  const uint32_t *ids)
{
	struct mlk_unwound stacks;
	int err = 0;

	if (!u->stacks)
		err = unwound_new(&u->stacks, leaks_unwinder(leaks), leaks_images(leaks));
	if (!err)
		err = unwound_gather(u->stacks, batch, ids, &stacks);
	if (err || !stacks.nr_allocs)
		return err;
	u->copy_err = mlk_copy_unwound(u->copy, &stacks);
	if (u->copy_err == -EINVAL) {
		u->copy_err = 0;
		u->nr_left++;
	}
	u->nr_allocs += stacks.nr_allocs;
	return u->copy_err;
}

static int take_batch(void *arg, const struct leaks *leaks, const struct batch *batch,
		      const uint32_t *ids)
{
	struct unwinding *u = arg;

	u->copy_err = mlk_copy_until(u->copy, batch->chunk.offset);
	if (u->copy_err || !(batch->chunk.records & MLK_RECORD_EVENT))
		return u->copy_err;
	return gather(u, leaks, batch, ids);
}

/* Say why there is no trace with stacks. */
static int explain(const struct unwinding *u, int err)
{
	if (err == MLK_E_CORRUPT)
		log_error("cannot unwind '%s': it is damaged; reports read what is whole of it, as "
			  "it is",
			  u->job.shown);
	else if (err == u->copy_err)
		log_error("cannot copy '%s' to '%s': %s", u->job.shown, u->shown,
			  mlk_strerror(err));
	else
		return job_explain_read(&u->job, err);
	return err == MLK_E_CORRUPT ? EXIT_USAGE : EXIT_FAILED;
}

/* Unwind all, and write it. */
static int unwind_all(struct unwinding *u)
{
	const struct report_opts *opts = u->job.opts;
	struct meter meter;
	struct leaks_opts how = {
		.debug_dirs = opts->debug_dirs,
		.nr_debug_dirs = opts->nr_debug_dirs,
		.symfs = opts->symfs,
		.nr_threads = opts->nr_threads,
		.progress = meter_move,
		.progress_arg = &meter,
		.batch = take_batch,
		.batch_arg = u,
	};
	struct leaks *leaks = NULL;
	int err;

	meter_begin(&meter, mlk_reader_size(u->job.trace), !opts->quiet);
	err = leaks_collect(&leaks, u->job.trace, &how);
	meter_end(&meter);
	if (!err) {
		u->skipped = leaks_condition(leaks)->bytes_skipped;
		err = leaks_condition(leaks)->chunks_lost ? MLK_E_CORRUPT : 0;
	}
	if (!err)
		err = u->copy_err = mlk_copy_finish(u->copy);
	unwound_free(u->stacks);
	leaks_free(leaks);
	return err ? explain(u, err) : EXIT_OK;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is what has the name now the trace that is being read, or another one that may be replaced, or
 * nothing?  Another may have come meanwhile. */
static int check_place(const struct unwinding *u)
{
	struct stat st;

	if (lstat(u->path, &st) || is_same(&st, &u->st))
		return EXIT_OK;
	if (!u->job.opts->output)
		log_error("'%s' is another file now, which was not replaced; try again", u->shown);
	else if (!S_ISREG(st.st_mode))
		log_error("cannot write '%s': it exists and is no regular file", u->shown);
	else if (st.st_uid != geteuid())
		log_error("cannot write '%s': a file of another user has that name", u->shown);
	else
		return EXIT_OK;
	return EXIT_USAGE;
}

/* Let those read the new file who could read the trace, and nobody else. */
static void set_access(const struct unwinding *u)
{
	mode_t mode = u->st.st_mode & 0777;

	/* only root may give a file away, but whoever is of a group may give it to that */
	if (fchown(u->fd, u->st.st_uid, u->st.st_gid) && fchown(u->fd, (uid_t)-1, u->st.st_gid))
		mode &= ~(mode_t)070;
	(void)!fchmod(u->fd, mode);
}

/* Create the file next to the one whose name it is to get. */
static int create(struct unwinding *u)
{
	int len = snprintf(part, sizeof(part), "%s.part%d", u->path, (int)getpid());
	int err = len < 0 || (size_t)len >= sizeof(part) ? -ENAMETOOLONG : 0;

	catch_signals();
	if (!err)
		u->fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (!err && u->fd < 0)
		err = -errno;
	if (err) {
		log_error("cannot create '%s': %s", u->shown, strerror(-err));
		return EXIT_FAILED;
	}
	set_access(u);
	return EXIT_OK;
}

/* Give the file its name. */
static int commit(const struct unwinding *u)
{
	int status = check_place(u);

	if (status != EXIT_OK)
		return status;
	if (!fsync(u->fd) && !rename(part, u->path))
		return EXIT_OK;
	log_error("cannot write '%s': %s", u->shown, strerror(errno));
	return EXIT_FAILED;
}

static void tell(const struct unwinding *u)
{
	char allocs[TEXT_NUMBER_MAX], now[TEXT_NUMBER_MAX], before[TEXT_NUMBER_MAX];

	if (u->skipped)
		log_warn("'%s' was cut: %" PRIu64 " bytes belong to no whole chunk, and were left "
			 "out",
			 u->job.shown, u->skipped);
	if (u->nr_left)
		log_warn("the stacks of %" PRIu64 " chunks are too long to be kept: reports unwind "
			 "them each time",
			 u->nr_left);
	if (u->job.opts->quiet)
		return;
	log_info("unwound the stacks of %s allocations; '%s' has %s bytes, '%s' had %s",
		 text_number(allocs, u->nr_allocs), u->shown,
		 text_number(now, mlk_copy_bytes(u->copy)), u->job.shown,
		 text_number(before, mlk_reader_size(u->job.trace)));
}

/* A trace without its end may be growing: then who writes it must not lose its file. */
static int check_whole(const struct unwinding *u)
{
	struct mlk_record record;
	struct stat st;
	int more;

	if (u->job.opts->output && (stat(u->path, &st) || !is_same(&st, &u->st)))
		return EXIT_OK;
	mlk_reader_rewind(u->job.trace, 0);
	while ((more = mlk_reader_next(u->job.trace, &record)) > 0)
		;
	if (more < 0)
		return job_explain_read(&u->job, more);
	if (mlk_reader_condition(u->job.trace)->ended)
		return EXIT_OK;
	log_error("'%s' was cut, or is still being recorded: name another file to write with -o",
		  u->job.shown);
	return EXIT_USAGE;
}

/* The path to write to: behind links, that what they lead to is replaced and not they. */
static char *target_of(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

/* What is to be written where. */
static int find_place(struct unwinding *u)
{
	const struct report_opts *opts = u->job.opts;
	int err, status;

	u->path = target_of(opts->output ? opts->output : opts->path);
	u->shown = text_escape(opts->output ? opts->output : opts->path);
	err = u->path && u->shown ? mlk_reader_stat(u->job.trace, &u->st) : -ENOMEM;
	if (err) {
		log_error("cannot read '%s': %s", u->job.shown, strerror(-err));
		return EXIT_FAILED;
	}
	status = check_place(u);
	return status == EXIT_OK ? check_whole(u) : status;
}

static int write_trace(struct unwinding *u)
{
	int err, status = create(u);

	if (status != EXIT_OK)
		return status;
	err = u->copy_err = mlk_copy_new(&u->copy, u->job.trace, u->fd, ZSTD_LEVEL);
	status = err ? explain(u, err) : unwind_all(u);
	if (status == EXIT_OK)
		status = commit(u);
	if (status == EXIT_OK)
		tell(u);
	else
		unlink(part);
	return status;
}

static int unwind(const struct report_opts *opts)
{
	struct unwinding u = {.fd = -1};
	int status = job_open(&u.job, opts, opts->path);

	if (status == EXIT_OK)
		status = find_place(&u);
	if (status == EXIT_OK)
		status = write_trace(&u);
	mlk_copy_free(u.copy);
	if (u.fd >= 0)
		close(u.fd);
	job_release(&u.job);
	free(u.path);
	free(u.shown);
	return status;
}

int cmd_unwind(int argc, char **argv)
{
	return command_run(argc, argv, unwind);
}
