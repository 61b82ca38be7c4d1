/* cmd_record.c - the life of a recording */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mleak.h"
#include "record/dry_run.h"
#include "record/launch.h"
#include "record/loop.h"
#include "record/options.h"
#include "record/output.h"
#include "record/preload_backend.h"
#include "record/privilege.h"
#include "record/progress.h"
#include "record/session.h"
#include "record/signals.h"

/* Die as the command did, so that a shell's loop sees it; else give its exit status. */
static int pass_on(int status)
{
	struct rlimit no_core = {0};
	sigset_t set;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core); /* the command's core is the one of interest */
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int dry_run(const struct target *t, const struct allocator_opts *opts)
{
	struct allocators a;
	int err = allocators_find(&a, t, opts);

	if (!err)
		dry_run_print(stdout, t, &a);
	allocators_release(&a);
	return err ? EXIT_RECORD_FAILED : 0;
}

/* Record s->target, which is open and, if we started it, held.  Returns 0, or EXIT_RECORD_FAILED
 * after one sentence was logged; *released says that the command runs. */
static int record(struct session *s, const struct record_opts *o, bool *released)
{
	struct session_opts opts = {.allocators = o->allocators,
				    .link = o->link,
				    .stack_limit = o->stack_limit,
				    .stack_mode = o->stack_mode,
				    .embed = o->embed,
				    .zstd_level = o->zstd_level};
	struct loop_opts limits = {.duration_ns = o->duration_ns, .max_size = o->max_size};
	struct output out;
	enum mlk_end reason;

	if (o->dry_run)
		return dry_run(&s->target, &o->allocators);
	if (output_create(&out, o->output))
		return EXIT_RECORD_FAILED;
	opts.fd = out.fd;
	opts.path = o->output;
	if (session_start(s, &opts) || output_commit(&out)) {
		mlk_writer_free(s->writer); /* its thread writes to the file */
		s->writer = NULL;
		output_close(&out);
		return EXIT_RECORD_FAILED;
	}
	if (s->preload)
		preload_go(s->preload);
	else if (s->target.started)
		launch_release(s->target.pid);
	*released = true;
	reason = loop_run(s, &limits);
	session_finish(s, reason);
	output_close(&out);
	if (s->err) {
		log_error("the trace '%s' ends early: %s; what it holds so far can be reported",
			  o->output, mlk_strerror(s->err));
		return EXIT_RECORD_FAILED;
	}
	if (reason == MLK_END_SIZE)
		log_info("the trace has the size given by --max-size: the recording ended there");
	progress_summary(s, o->output);
	return 0;
}

static int record_process(const struct record_opts *o)
{
	struct session s = {0};
	bool released = true;
	int status = EXIT_RECORD_FAILED;

	signals_block();
	if (!target_open(&s.target, o->pid))
		status = record(&s, o, &released);
	session_release(&s);
	return status;
}

/* Start the command, as its backend wants it.  Returns as launch_start(). */
static int launch(struct session *s, const struct record_opts *o, pid_t *pid, int *ended)
{
	const struct preload_opts opts = {
		.stack_limit = o->stack_limit, .ring_size = o->ring_size, .block_ns = o->block_ns};

	if (o->dry_run || o->backend == BACKEND_BPF ||
	    (o->backend == BACKEND_AUTO && privilege_for_bpf()))
		return launch_start(o->argv, pid, ended);
	if (preload_new(&s->preload, &opts))
		return EXIT_RECORD_FAILED;
	return preload_launch(s->preload, o->argv, pid, ended);
}

static int record_command(const struct record_opts *o)
{
	struct session s = {0};
	bool released = false;
	pid_t pid;
	int ended, status = launch(&s, o, &pid, &ended);

	if (status) {
		session_release(&s);
		return status == LAUNCH_ENDED ? pass_on(ended) : status;
	}
	signals_block();
	status = EXIT_RECORD_FAILED;
	if (!target_open(&s.target, pid)) {
		s.target.started = true;
		status = record(&s, o, &released);
	}
	session_release(&s);
	if (!released) {
		launch_abort(pid);
		return status;
	}
	ended = signals_wait_for(pid);
	return status || ended < 0 ? EXIT_RECORD_FAILED : pass_on(ended);
}

int cmd_record(int argc, char **argv)
{
	struct record_opts o;

	if (record_options_parse(&o, argc, argv))
		return EXIT_RECORD_FAILED;
	if (o.help) {
		record_options_help();
		return EXIT_OK;
	}
	return o.argv ? record_command(&o) : record_process(&o);
}
