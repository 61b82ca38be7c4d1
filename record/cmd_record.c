/* cmd_record.c - the life of a recording */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mleak.h"
#include "record/dry_run.h"
#include "record/helper.h"
#include "record/kernel.h"
#include "record/launch.h"
#include "record/limits.h"
#include "record/loop.h"
#include "record/options.h"
#include "record/output.h"
#include "record/preload_backend.h"
#include "record/privileges.h"
#include "record/progress.h"
#include "record/session.h"
#include "record/signals.h"
#include "record/tracer.h"

/* Where processes wait for a processor, who empties the ring goes before who fills it. */
#define NICENESS (-10)

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

/* @warn: there would be no probes. */
static int dry_run(const struct session *s, const struct allocator_opts *opts, bool warn)
{
	int err = 0;

	for (size_t i = 0; !err && i < s->nr; i++) {
		const struct target *t = &s->all[i]->target;
		struct allocators a;

		err = allocators_find(&a, t, opts);
		if (!err)
			dry_run_print(stdout, t, &a);
		allocators_release(&a);
	}
	if (!err && warn)
		log_warn("eBPF is not allowed here: without --dry-run the command is recorded by "
			 "the preloaded library, not by these probes");
	return err ? EXIT_RECORD_FAILED : 0;
}

/* A command that we have started, if any, and its end. */
struct command {
	pid_t pid;
	struct helper *helper; /* that was started for its recording; NULL: none */
	bool released;	       /* it runs */
	bool waited;	       /* it has ended, */
	int status;	       /* so */
};

/* All is ready: the command may run. */
static void release(struct session *s, struct command *c)
{
	if (s->preload)
		preload_go(s->preload);
	else if (c->pid && s->tracer)
		tracer_release(s->tracer);
	else if (c->pid)
		launch_release(c->pid);
	c->released = true;
}

/* Leave to a process of its own what takes privileges while we record, and give them up. */
static void give_up_privileges(struct session *s, struct command *c)
{
	int programs[PROBES_MAX_PROGRAMS];
	const struct privileges_later later = {.preload = s->preload != NULL,
					       .perf = s->probes && !probes_are_multi(s->probes),
					       .started = s->command != 0};
	struct helper_opts opts = {
		.follow = s->follow, .programs = programs, .caps = privileges_needed(&later)};
	uint64_t kept = kernel_maps_take_bpf() && s->probes ? 1ull << CAP_BPF : 0;
	pid_t *pids = calloc(s->nr + 1, sizeof(*pids));
	int err = pids ? 0 : -ENOMEM;

	for (size_t i = 0; pids && i < s->nr; i++)
		pids[i] = s->all[i]->target.pid;
	opts.pids = pids;
	opts.nr = s->nr;
	if (s->preload)
		preload_memory(s->preload, &opts.memory_dev, &opts.memory_inode);
	opts.nr_programs = s->probes ? probes_programs(s->probes, programs) : 0;
	if (!err && opts.caps)
		err = helper_start(&c->helper, &opts);
	free(pids);
	if (err)
		log_warn("cannot start another process that keeps privileges (%s): they are kept "
			 "here",
			 strerror(-err));
	session_set_helper(s, c->helper);
	privileges_reduce(err ? opts.caps : kept, s->journal.writer);
	if (s->tracer)
		tracer_give_up_privileges(s->tracer);
}

/* From here on nothing holds the command and its children. */
static void set_free(struct session *s, struct command *c)
{
	if (!s->tracer)
		return;
	c->waited = tracer_stop(s->tracer, &c->status);
	tracer_free(s->tracer);
	s->tracer = NULL;
}

/* What --ring-size means for the backend. */
static uint32_t ring_size(const struct record_opts *o, bool preload)
{
	if (!preload)
		return o->ring_size ? o->ring_size : PROBES_RING_SIZE;
	if (!o->ring_size)
		return PRELOAD_USUAL_RING;
	return o->ring_size < PRELOAD_MOST_RING ? o->ring_size : PRELOAD_MOST_RING;
}

/* The trace is there: say how it ended, and what is in it.  Returns as record(). */
static int conclude(const struct session *s, const struct record_opts *o, enum mlk_end reason)
{
	if (s->journal.err) {
		log_error("the trace '%s' ends early: %s; what it holds so far can be reported",
			  o->output, mlk_strerror(s->journal.err));
		return EXIT_RECORD_FAILED;
	}
	if (reason == MLK_END_SIZE)
		log_info("the trace has the size given by --max-size: the recording ended there");
	progress_summary(s, o->output);
	return 0;
}

/* Record the processes of @s, which are open, and of which @c is held if we started it.  Returns 0,
 * or EXIT_RECORD_FAILED after one sentence was logged. */
static int record(struct session *s, const struct record_opts *o, struct command *c)
{
	struct session_opts opts = {.allocators = o->allocators,
				    .filters = o->filters,
				    .link = o->link,
				    .stack_limit = o->stack_limit,
				    .ring_size = ring_size(o, s->preload),
				    .stack_mode = o->stack_mode,
				    .embed = o->embed,
				    .zstd_level = o->zstd_level,
				    .follow = o->follow,
				    .guard = o->guard};
	struct loop_opts limits = {.duration_ns = o->duration_ns,
				   .max_size = o->max_size,
				   .ring_size = opts.ring_size};
	struct output out;
	enum mlk_end reason;

	if (limits.duration_ns)
		limits.duration_ns += o->filters.delay_ns;
	if (o->dry_run)
		return dry_run(s, &o->allocators,
			       c->pid && o->backend == BACKEND_AUTO &&
				       !privileges_allow_bpf(o->link == PROBE_LINK_PERF));
	if (!s->preload &&
	    (privileges_check(s->pid, o->link == PROBE_LINK_PERF) || limits_check_files()))
		return EXIT_RECORD_FAILED;
	if (output_create(&out, o->output))
		return EXIT_RECORD_FAILED;
	opts.fd = out.fd;
	opts.path = o->output;
	if (session_start(s, &opts) || output_commit(&out)) {
		mlk_writer_free(s->journal.writer); /* its thread writes to the file */
		s->journal.writer = NULL;
		output_close(&out);
		return EXIT_RECORD_FAILED;
	}
	release(s, c);
	/* of this thread; not allowed to all, nor to us once privileges are given up */
	setpriority(PRIO_PROCESS, 0, NICENESS);
	give_up_privileges(s, c);
	reason = loop_run(s, &limits);
	set_free(s, c);
	session_finish(s, reason);
	output_close(&out);
	return conclude(s, o, reason);
}

static int record_processes(const struct record_opts *o)
{
	struct session s = {0};
	struct command none = {0};
	int err = 0, status = EXIT_RECORD_FAILED;

	signals_block();
	for (size_t i = 0; !err && i < o->nr_pids; i++)
		err = session_add_pid(&s, o->pids[i]);
	if (!err)
		status = record(&s, o, &none);
	set_free(&s, &none);
	session_release(&s);
	helper_stop(none.helper);
	return status;
}

/* Is the command to be recorded by the preloaded library? */
static bool wants_preload(const struct record_opts *o)
{
	if (o->dry_run || o->backend == BACKEND_BPF)
		return false;
	return o->backend == BACKEND_PRELOAD || !privileges_allow_bpf(o->link == PROBE_LINK_PERF);
}

/* Is something asked of a recording by the library that only probes can do, without --backend
 * preload, with which it is refused before?  Logs one sentence and returns true then. */
static bool wants_probes_in_vain(const struct record_opts *o)
{
	const char *option = record_options_for_probes(o), *missing;

	if (o->backend != BACKEND_AUTO || !option || !wants_preload(o))
		return false;
	missing = privileges_missing(o->link == PROBE_LINK_PERF);
	log_error("%s needs eBPF, %s%s: run mleak as root, or leave that out to record the command "
		  "by the preloaded library",
		  option, *missing ? "for which mleak lacks " : "which is not allowed here",
		  missing);
	return true;
}

/* Followed programs find the shared memory in /proc/PID/fd of the recorder.  The kernel closes that
 * to its own user when mleak's file has capabilities.  Logs one sentence and returns true then. */
static bool hides_memory(const struct record_opts *o)
{
	if (!o->follow || !geteuid() || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1)
		return false;
	log_error("cannot follow children with --backend preload: mleak's file has capabilities, "
		  "so they may not open the memory to share; use a copy of mleak without them");
	return true;
}

/* Start the command, as its backend wants it.  Returns as launch_start(). */
static int launch(struct session *s, const struct record_opts *o, pid_t *pid, int *ended)
{
	const uint32_t size = ring_size(o, true);
	const struct preload_opts opts = {
		.stack_limit = o->stack_limit,
		.rings = {.nr_rings = PRELOAD_MAX_RINGS,
			  .ring_size = size,
			  .large_size = o->ring_size ? size : PRELOAD_USUAL_LARGE},
		.filters = &o->filters,
		.block_ns = o->block_ns,
		.guard = o->guard,
		.follow = o->follow};

	struct launch l;
	int status;

	if (!wants_preload(o) && o->follow)
		return tracer_start(&s->tracer, o->argv, pid, ended);
	if (!wants_preload(o)) {
		status = launch_fork(&l, o->argv);
		return status ? status : launch_start(&l, o->argv, pid, ended);
	}
	if (hides_memory(o) || preload_new(&s->preload, &opts))
		return EXIT_RECORD_FAILED;
	return preload_launch(s->preload, o->argv, pid, ended);
}

static int record_command(const struct record_opts *o)
{
	struct session s = {0};
	struct command c = {0};
	int ended, status = EXIT_RECORD_FAILED;
	bool held;

	if (!wants_probes_in_vain(o))
		status = launch(&s, o, &c.pid, &ended);
	if (status) {
		session_release(&s);
		return status == LAUNCH_ENDED ? pass_on(ended) : status;
	}
	signals_block();
	status = EXIT_RECORD_FAILED;
	if (!session_add_pid(&s, c.pid)) {
		s.command = c.pid;
		s.all[0]->target.started = true;
		s.all[0]->traced = o->follow && !s.preload;
		status = record(&s, o, &c);
	}
	held = s.tracer != NULL;
	set_free(&s, &c); /* kills one that does not run yet */
	session_release(&s);
	if (!c.released) {
		if (!held)
			launch_abort(c.pid);
		return status;
	}
	ended = c.waited ? c.status : signals_wait_for(c.pid, c.helper);
	helper_stop(c.helper);
	return status || ended < 0 ? EXIT_RECORD_FAILED : pass_on(ended);
}

int cmd_record(int argc, char **argv)
{
	struct record_opts o;

	if (record_options_parse(&o, argc, argv))
		return EXIT_RECORD_FAILED;
	if (o.help) {
		record_options_help();
		return print_finish(EXIT_OK) ? EXIT_RECORD_FAILED : EXIT_OK;
	}
	limits_raise();
	return o.argv ? record_command(&o) : record_processes(&o);
}
