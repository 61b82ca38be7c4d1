/* cmd_record.c - the life of a recording */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mleak.h"
#include "record/launch.h"
#include "record/loop.h"
#include "record/options.h"
#include "record/output.h"
#include "record/progress.h"
#include "record/session.h"

/* Die as the command did, so that a shell's loop sees it; else give its exit status. */
static int pass_on(int status)
{
	struct rlimit no_core = {0};

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core); /* the command's core is the one of interest */
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* Wait for the command that was recorded, and take over its exit status. */
static int wait_for_command(pid_t pid)
{
	int status;

	loop_unblock_signals();
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_RECORD_FAILED;
	return pass_on(status);
}

/* Record s->target, which is open and, if we started it, held.  Returns 0, or EXIT_RECORD_FAILED
 * after one sentence was logged; *released says that the command runs. */
static int record(struct session *s, const struct record_opts *o, bool *released)
{
	struct session_opts opts = {.link = o->link, .stack_limit = o->stack_limit};
	struct loop_opts limits = {.duration_ns = o->duration_ns};
	struct output out;

	if (output_create(&out, o->output))
		return EXIT_RECORD_FAILED;
	opts.fd = out.fd;
	if (session_start(s, &opts)) {
		output_discard(&out);
		return EXIT_RECORD_FAILED;
	}
	loop_block_signals();
	if (s->target.started)
		launch_release(s->target.pid);
	*released = true;
	session_finish(s, loop_run(s, &limits));
	output_close(&out);
	if (s->err) {
		log_error("the trace '%s' ends early: %s; what it holds so far can be reported",
			  o->output, mlk_strerror(s->err));
		return EXIT_RECORD_FAILED;
	}
	progress_summary(s, o->output);
	return 0;
}

static int record_process(const struct record_opts *o)
{
	struct session s = {0};
	bool released = true;
	int status = EXIT_RECORD_FAILED;

	if (!target_open(&s.target, o->pid))
		status = record(&s, o, &released);
	session_release(&s);
	return status;
}

static int record_command(const struct record_opts *o)
{
	struct session s = {0};
	bool released = false;
	pid_t pid;
	int status = launch_start(o->argv, &pid);

	if (status)
		return status;
	status = EXIT_RECORD_FAILED;
	if (!target_open(&s.target, pid)) {
		s.target.started = true;
		status = record(&s, o, &released);
	}
	session_release(&s);
	if (!released)
		launch_abort(pid);
	else if (status)
		wait_for_command(pid);
	else
		status = wait_for_command(pid);
	return status;
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
