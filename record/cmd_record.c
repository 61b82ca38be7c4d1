/* cmd_record.c - the life of a recording */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/trace.h"
#include "mleak.h"
#include "record/allocator/allocator_explain.h"
#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/base/rlimits.h"
#include "record/choose.h"
#include "record/dry_run.h"
#include "record/event_loop.h"
#include "record/helper/helper_serve.h"
#include "record/options.h"
#include "record/preload/backend.h"
#include "record/privilege/helper.h"
#include "record/privilege/privileges.h"
#include "record/ptrace/launch.h"
#include "record/ptrace/seize.h"
#include "record/ptrace/tracer.h"
#include "record/session/session.h"
#include "record/signals.h"
#include "record/then_unwind.h"

/* In place of an exit status: the kernel refused eBPF, and the command did not run.  Its value is
 * none of LAUNCH_ENDED and exit statuses. */
#define REFUSED (-2)

/* A command that we have started, if any, and its end. */
struct command {
	pid_t pid;
	struct helper *helper; /* of its recording; NULL: none, */
	int helper_err;	       /* because of that */
	bool released;	       /* it runs */
	bool waited;	       /* it has ended, */
	int status;	       /* so */
};

/* Leave to a process of its own what takes privileges while we record, and give them up.  @folder:
 * where traces are made; -1: none will be. */
static void give_up_privileges(struct session *s, struct command *c, int folder)
{
	int programs[PROBES_MAX_PROGRAMS];
	const struct privileges_later later = {.preload = s->preload != NULL,
					       .perf = s->probes != NULL,
					       .started = s->command != 0,
					       .injects = s->inject != NULL,
					       .stops = s->reach.stop || s->inject};
	struct helper_opts opts = {
		.follow = s->follow, .programs = programs, .caps = privileges_needed(&later)};
	uint64_t kept = kernel_maps_take_bpf() && s->probes ? 1ull << CAP_BPF : 0;
	/* Further traces go where the first one did, which others may own. */
	uint64_t writes = folder >= 0 ? 1ull << CAP_DAC_OVERRIDE : 0;
	pid_t *pids = calloc(s->nr + 1, sizeof(*pids));
	int err = pids ? c->helper_err : -ENOMEM;

	for (size_t i = 0; pids && i < s->nr; i++)
		pids[i] = s->all[i]->target.pid;
	opts.pids = pids;
	opts.nr = s->nr;
	if (s->preload)
		preload_memory(s->preload, &opts.memory_dev, &opts.memory_inode);
	opts.nr_programs = s->probes ? probes_programs(s->probes, programs) : 0;
	if (!err && opts.caps)
		err = helper_begin(c->helper, &opts);
	free(pids);
	if (err || !opts.caps) {
		helper_stop(c->helper);
		c->helper = NULL;
	}
	if (err)
		log_warn("cannot start a helper process that keeps the privileges (%s): the "
			 "recorder keeps them itself",
			 strerror(-err));
	session_set_helper(s, c->helper);
	/* Without the helper nothing could read the mappings of processes. */
	if (c->helper)
		sandbox_enter_both(s->out.writer, folder);
	privileges_reduce((err ? opts.caps : kept) | writes, s->out.writer);
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

/* The trace should be there: say how it ended, and what is in it.  Returns as record(). */
static int conclude(const struct session *s, const struct output *out, enum mlk_end reason)
{
	if (s->out.err && s->out.err != MLK_E_CHANGED) {
		log_error("the trace '%s' ends early: %s; what it holds so far can be reported",
			  out->path, mlk_strerror(s->out.err));
		return EXIT_RECORD_FAILED;
	}
	if (output_check(out, mlk_writer_bytes(s->out.writer)))
		return EXIT_RECORD_FAILED;
	if (reason == MLK_END_SIZE)
		log_info("the trace reached the size given by --max-size: the recording ended");
	progress_summary(s, out);
	return 0;
}

/* Without that all is as on the command line. */
static void listen_for_requests(struct control *control)
{
	int err = control_open(control);

	if (err)
		log_warn("'mleak ctl' cannot reach this recorder: %s", strerror(-err));
}

/* Whose traces they are, and how the recording was begun: for struct switch_writer. */
struct session_traces {
	struct session *s;
	const struct session_opts *how;
};

static int end_trace(void *ctx, enum mlk_end reason, uint64_t *bytes)
{
	struct session *s = ((struct session_traces *)ctx)->s;

	session_end_trace(s, reason, bytes);
	return s->out.err;
}

static void begin_trace(void *ctx, int fd)
{
	const struct session_traces *traces = ctx;

	session_begin_trace(traces->s, traces->how, fd);
}

static struct session_opts recording_of(const struct session *s, const struct record_opts *o)
{
	return (struct session_opts){.allocators = o->allocators,
				     .filters = o->filters,
				     .link = o->link,
				     .stack_limit = o->stack_limit,
				     .ring_size = ring_size(o, s->preload),
				     .stack_mode = o->stack_mode,
				     .embed = o->embed,
				     .zstd_level = o->zstd_level,
				     .follow = o->follow,
				     .no_file_names = o->no_file_names,
				     .guard = o->guard,
				     .force = o->force,
				     .falls_back = o->argv && o->backend == BACKEND_AUTO};
}

/* Record the processes of @s, which are open, and of which @c is held if we started it.  Returns 0,
 * or EXIT_RECORD_FAILED after one sentence was logged, or REFUSED. */
static int record(struct session *s, const struct record_opts *o, struct command *c)
{
	struct session_opts opts = recording_of(s, o);
	struct output out = {.number = o->several.on};
	struct session_traces traces = {s, &opts};
	struct switcher sw = {.opts = &o->several,
			      .name = &o->output,
			      .out = &out,
			      .pid = s->pid,
			      .writer = {&traces, end_trace, begin_trace}};
	struct control control;
	struct event_loop_opts limits = {.duration_ns = o->duration_ns,
					 .max_size = o->max_size,
					 .ring_size = opts.ring_size,
					 .switcher = &sw,
					 .control = &control,
					 .reach = o->reach,
					 .reach_ns = o->reach_ns,
					 .reach_spare = o->reach_spare};
	enum mlk_end reason;
	int status;

	s->reach.stop = o->reach_stop;
	if (o->reach)
		session_reach_plan(s, (unsigned int)o->passes);
	if (limits.duration_ns)
		limits.duration_ns += o->filters.delay_ns;
	if (o->dry_run)
		return record_dry_run(s, o);
	if (!s->preload && (choose_check(o, s->pid) || rlimits_check_files()))
		return EXIT_RECORD_FAILED;
	if (output_open(&out, &o->output, s->pid))
		return EXIT_RECORD_FAILED;
	opts.fd = out.fd;
	opts.path = out.path;
	if (session_start(s, &opts) || output_take(&out)) {
		mlk_writer_free(s->out.writer); /* its thread writes to the file */
		s->out.writer = NULL;
		output_close(&out);
		return s->refusal.err ? REFUSED : EXIT_RECORD_FAILED;
	}
	listen_for_requests(&control);
	session_reach_open(s);
	session_sample_all(s); /* of a command before anything of it runs */
	s->backend->go(s);     /* all is ready */
	c->released = true;
	give_up_privileges(s, c, o->several.on ? out.place.dir : -1);
	if (o->several.time_ns)
		sw.next_ns = clock_now_ns() + o->several.time_ns;
	reason = event_loop_run(s, &limits);
	control_close(&control);
	set_free(s, c);
	session_finish(s, reason);
	status = conclude(s, &out, reason);
	switch_release(&sw);
	output_close(&out);
	if (!status)
		then_unwind_begin(o->after, out.path, s->told_to_end);
	if (!status && !o->argv && o->output.pipe < 0 && !log_is_quiet())
		tell_growth(out.path);
	return status;
}

/* What the code in the target is to do; where its memory comes from is for the caller to say. */
static struct preload_opts preload_of(const struct record_opts *o)
{
	const uint32_t size = ring_size(o, true);

	return (struct preload_opts){
		.stack_limit = o->stack_limit,
		.rings = {.nr_rings = PRELOAD_MAX_RINGS,
			  .ring_size = size,
			  .large_size = o->ring_size ? size : PRELOAD_USUAL_LARGE},
		.filters = &o->filters,
		.block_ns = o->block_ns,
		.guard = o->guard,
		.follow = o->follow,
		.memory = -1};
}

static int record_processes(const struct record_opts *o)
{
	struct session s = {0};
	struct command none = {0};
	struct preload_opts inside = preload_of(o);
	int err = 0, status = EXIT_RECORD_FAILED;

	none.helper_err = helper_start(&none.helper, helper_serve);
	signals_block();
	for (size_t i = 0; !err && i < o->nr_pids; i++)
		err = session_add_pid(&s, o->pids[i]);
	if (!err && o->backend == BACKEND_INJECT && !o->dry_run)
		err = session_open_inject(&s, &inside);
	else if (!err && !o->dry_run)
		err = session_remove_injected(&s);
	if (!err)
		status = record(&s, o, &none);
	set_free(&s, &none);
	session_release(&s);
	helper_stop(none.helper);
	if (then_unwind_finish(o->after, false))
		status = EXIT_RECORD_FAILED;
	return status;
}

/* Followed programs find the shared memory in /proc/PID/fd of the recorder.  The kernel closes that
 * to its own user when mleak's file has capabilities.  Logs one sentence and returns true then. */
static bool hides_memory(const struct record_opts *o)
{
	if (!o->follow || !geteuid() || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1)
		return false;
	log_error("cannot follow children with --backend preload: mleak's file has capabilities, "
		  "so children may not open the shared memory; use a copy of mleak without "
		  "capabilities");
	return true;
}

/* Start the command, as its backend wants it.  Returns as launch_start(). */
static int launch(struct session *s, const struct record_opts *o, pid_t *pid, int *ended)
{
	const struct preload_opts opts = preload_of(o);
	const unsigned int held = (o->follow ? SEIZE_CHILDREN : 0) | (o->reach ? SEIZE_EXIT : 0);
	struct launch l;
	int status;

	if (o->backend != BACKEND_PRELOAD && held)
		return tracer_start(&s->tracer, o->argv, held, pid, ended);
	if (o->backend != BACKEND_PRELOAD) {
		status = launch_fork(&l, o->argv);
		return status ? status : launch_start(&l, o->argv, pid, ended);
	}
	if (hides_memory(o) || preload_new(&s->preload, &opts))
		return EXIT_RECORD_FAILED;
	return preload_launch(s->preload, o->argv, pid, ended);
}

/* Has a pipe the beginning of a trace, which cannot be taken back? */
static bool has_begun_for_good(const struct record_opts *o)
{
	return o->output.pipe >= 0 && o->output.told < 0;
}

/* Why eBPF was refused to @s. */
static void tell_refusal(const struct session *s, const struct record_opts *o)
{
	struct refusal_facts facts;
	char why[REFUSAL_TEXT];

	refusal_read_facts(&facts);
	refusal_explain(&facts, &s->refusal, why, sizeof(why));
	if (has_begun_for_good(o))
		log_error("cannot record by eBPF: %s; the pipe has the beginning of a trace by "
			  "now: give --backend preload",
			  why);
	else
		choose_tell(why);
}

/* Start and record the command by the backend of @o.  Returns the exit status, or REFUSED after a
 * line that says so: the command, held before anything of it ran, was ended. */
static int run_command(const struct record_opts *o)
{
	struct session s = {0};
	struct command c = {0};
	bool held, told = false;
	int ended, status;

	if (o->backend != BACKEND_PRELOAD && !o->dry_run && rlimits_check_files())
		return EXIT_RECORD_FAILED;
	c.helper_err = helper_start(&c.helper, helper_serve);
	status = launch(&s, o, &c.pid, &ended);
	if (status) {
		helper_stop(c.helper);
		session_release(&s);
		return status == LAUNCH_ENDED ? end_as(ended) : status;
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
		helper_stop(c.helper);
		if (!held)
			launch_abort(c.pid);
		if (status == REFUSED)
			tell_refusal(&s, o);
		return status;
	}
	ended = c.waited ? c.status : signals_wait_for(c.pid, c.helper, &told);
	helper_stop(c.helper);
	if (then_unwind_finish(o->after, told))
		status = EXIT_RECORD_FAILED;
	return status || ended < 0 ? EXIT_RECORD_FAILED : end_as(ended);
}

static int record_command(const struct record_opts *o)
{
	struct record_opts chosen = *o;
	int status;

	if (o->backend == BACKEND_AUTO && !o->dry_run && choose_backend(o, &chosen.backend))
		return EXIT_RECORD_FAILED;
	status = run_command(&chosen);
	if (status != REFUSED)
		return status;
	/* what went there of the trace that had begun cannot be taken back */
	if (o->output.told >= 0)
		return EXIT_REFUSED;
	if (has_begun_for_good(o))
		return EXIT_RECORD_FAILED;
	signals_unblock();
	chosen.backend = BACKEND_PRELOAD;
	return run_command(&chosen);
}

static int record_kernel(const struct record_opts *o)
{
	struct kernel_opts opts = o->of_kernel;

	opts.output = o->output;
	opts.duration_ns = o->duration_ns;
	opts.max_size = o->max_size;
	opts.several = o->several;
	opts.zstd_level = o->zstd_level;
	opts.probes.min_size = o->filters.min_size;
	opts.probes.max_size = o->filters.max_size;
	opts.probes.sample_every = o->filters.sample_every;
	return kernel_record(&opts);
}

/* The trace goes to @pipe, if there is one; see record_into(). */
static int record_as(int argc, char **argv, int pipe, int told)
{
	struct record_opts o;
	int status;

	if (record_options_parse(&o, argc, argv))
		return EXIT_RECORD_FAILED;
	if (o.help) {
		record_options_help();
		return print_finish(EXIT_OK) ? EXIT_RECORD_FAILED : EXIT_OK;
	}
	if (o.quiet || pipe >= 0)
		log_quiet();
	o.output.pipe = pipe;
	o.output.told = told;
	if (pipe < 0 && !strcmp(o.output.name, "-") && !o.dry_run &&
	    output_claim_pipe(&o.output.pipe))
		return EXIT_RECORD_FAILED;
	if (then_unwind_start(&o.after, &o))
		return EXIT_RECORD_FAILED;
	rlimits_raise();
	if (o.kernel)
		return record_kernel(&o);
	status = o.argv ? record_command(&o) : record_processes(&o);
	then_unwind_free(o.after);
	return status;
}

int cmd_record(int argc, char **argv)
{
	return record_as(argc, argv, -1, -1);
}

int record_into(int argc, char **argv, int fd, int told)
{
	return record_as(argc, argv, fd, told);
}
