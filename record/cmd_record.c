/* cmd_record.c - `mleak record`: what is recorded, how, and what comes of the command */
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/memory_room.h"
#include "record/base/rlimits.h"
#include "record/choose.h"
#include "record/helper/helper_serve.h"
#include "record/options.h"
#include "record/preload/backend.h"
#include "record/privilege/helper.h"
#include "record/ptrace/launch.h"
#include "record/ptrace/seize.h"
#include "record/ptrace/tracer.h"
#include "record/recording.h"
#include "record/session/session.h"
#include "record/signals.h"
#include "record/then_unwind.h"

/* The rings of process @pid: what its threads write stays there, in its control group.  The large
 * ones, which are filled first, are to take an eighth of what that leaves at most. */
static struct preload_sizes rings_of(const struct record_opts *o, pid_t pid)
{
	const uint32_t size = recording_ring_size(o, true);
	const uint64_t room = o->ring_size ? UINT64_MAX : memory_room(pid);
	uint32_t large = o->ring_size ? size : PRELOAD_USUAL_LARGE;

	while (large > PRELOAD_LEAST_LARGE && (uint64_t)large * PRELOAD_NR_LARGE > room / 8)
		large /= 2;
	return (struct preload_sizes){.nr_rings = PRELOAD_MAX_RINGS,
				      .ring_size = size < large ? size : large,
				      .large_size = large};
}

/* What the code in process @pid is to do, or in what this one begins; where its memory comes from
 * is for the caller to say. */
static struct preload_opts preload_of(const struct record_opts *o, pid_t pid)
{
	return (struct preload_opts){.stack_limit = o->stack_limit,
				     .rings = rings_of(o, pid),
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
	struct preload_opts inside;
	int err, status = EXIT_RECORD_FAILED;

	none.helper_err = helper_start(&none.helper, helper_serve);
	signals_block();
	err = session_add_pids(&s, o->pids, o->nr_pids);
	if (!err && o->backend == BACKEND_INJECT && !o->dry_run) {
		inside = preload_of(o, s.pid);
		err = session_open_inject(&s, &inside);
	} else if (!err && !o->dry_run) {
		err = session_remove_injected(&s);
	}
	if (!err)
		status = recording_run(&s, o, &none);
	recording_set_free(&s, &none);
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
	const unsigned int held = (o->follow ? SEIZE_CHILDREN : 0) | (o->reach ? SEIZE_EXIT : 0);
	struct preload_opts opts;
	struct launch l;
	int status;

	if (o->backend != BACKEND_PRELOAD && held)
		return tracer_start(&s->tracer, o->argv, held, pid, ended);
	if (o->backend != BACKEND_PRELOAD) {
		status = launch_fork(&l, o->argv);
		return status ? status : launch_start(&l, o->argv, pid, ended);
	}
	opts = preload_of(o, getpid());
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
		status = recording_run(&s, o, &c);
	}
	held = s.tracer != NULL;
	recording_set_free(&s, &c); /* kills one that does not run yet */
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
