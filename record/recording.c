/* recording.c - see recording.h */
#include "record/recording.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "format/trace.h"
#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/base/memory_room.h"
#include "record/base/rlimits.h"
#include "record/choose.h"
#include "record/dry_run.h"
#include "record/event_loop.h"
#include "record/preload/backend.h"
#include "record/privilege/helper.h"
#include "record/privilege/privileges.h"
#include "record/ptrace/tracer.h"
#include "record/then_unwind.h"
#include "record/trace/write_failed.h"

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

void recording_set_free(struct session *s, struct command *c)
{
	if (!s->tracer)
		return;
	c->waited = tracer_stop(s->tracer, &c->status);
	tracer_free(s->tracer);
	s->tracer = NULL;
}

uint32_t recording_ring_size(const struct record_opts *o, bool preload)
{
	if (!preload)
		return o->ring_size ? o->ring_size : PROBES_RING_SIZE;
	if (!o->ring_size)
		return PRELOAD_USUAL_RING;
	return o->ring_size < PRELOAD_MOST_RING ? o->ring_size : PRELOAD_MOST_RING;
}

/* What a recording takes beside its rings when it begins, by measurement, rounded up. */
#define BESIDE_RINGS (24u << 20)

/* The kernel would end mleak, or another process of its control group, where the rings of @opts
 * have no room there.  Make those that nobody asked for smaller.  Returns as recording_run(). */
static int fit_rings(const struct record_opts *o, struct session_opts *opts)
{
	uint64_t room = memory_room(getpid());
	uint32_t size = opts->ring_size;

	/* The kernel gives the rings of a recorder that has ended back a moment later. */
	for (int i = 0; o->ring_size && size >= room && i < 20; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		room = memory_room(getpid());
	}
	if (o->ring_size && size >= room) {
		log_error("cannot make rings of %llu MiB: mleak may have only %llu MiB more by its "
			  "control group; give a smaller --ring-size",
			  memory_mib(size), memory_mib(room));
		return EXIT_RECORD_FAILED;
	}
	if (o->ring_size || size + BESIDE_RINGS <= room)
		return 0;
	/* what is recorded takes memory, too */
	while (size > PROBES_LEAST_RING && BESIDE_RINGS + 2ull * size > room)
		size /= 2;
	log_info("its control group leaves mleak %llu MiB: the ring has %llu MiB in place of %llu",
		 memory_mib(room), memory_mib(size), memory_mib(opts->ring_size));
	opts->ring_size = size;
	return 0;
}

/* The trace should be there: say how it ended, and what is in it.  Returns as recording_run(). */
static int conclude(const struct session *s, const struct output *out, enum mlk_end reason)
{
	if (s->out.err && s->out.err != MLK_E_CHANGED) {
		write_failed_tell(out->path, s->out.err, true);
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
				     .ring_size = recording_ring_size(o, s->preload),
				     .stack_mode = o->stack_mode,
				     .embed = o->embed,
				     .zstd_level = o->zstd_level,
				     .follow = o->follow,
				     .no_file_names = o->no_file_names,
				     .guard = o->guard,
				     .force = o->force,
				     .falls_back = o->argv && o->backend == BACKEND_AUTO};
}

/* Open the trace as @o says and begin to record into it.  Returns as recording_run(); @out is open
 * only on success. */
static int begin(struct session *s, const struct record_opts *o, struct session_opts *opts,
		 struct output *out)
{
	if (!s->preload && (choose_check(o, s->pid) || rlimits_check_files()))
		return EXIT_RECORD_FAILED;
	if (output_open(out, &o->output, s->pid))
		return EXIT_RECORD_FAILED;
	opts->fd = out->fd;
	opts->path = out->path;
	if (!session_start(s, opts) && !output_take(out))
		return 0;
	mlk_writer_free(s->out.writer); /* its thread writes to the file */
	s->out.writer = NULL;
	output_close(out);
	return s->refusal.err ? REFUSED : EXIT_RECORD_FAILED;
}

/* All is ready: let the processes run, and record until something ends that. */
static enum mlk_end run(struct session *s, struct command *c, const struct event_loop_opts *limits,
			int folder)
{
	enum mlk_end reason;

	listen_for_requests(limits->control);
	session_reach_open(s);
	session_sample_all(s); /* of a command before anything of it runs */
	s->backend->go(s);
	c->released = true;
	give_up_privileges(s, c, folder);
	if (limits->switcher->opts->time_ns)
		limits->switcher->next_ns = clock_now_ns() + limits->switcher->opts->time_ns;
	reason = event_loop_run(s, limits);
	control_close(limits->control);
	recording_set_free(s, c);
	session_finish(s, reason);
	return reason;
}

int recording_run(struct session *s, const struct record_opts *o, struct command *c)
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
					 .switcher = &sw,
					 .control = &control,
					 .reach = o->reach,
					 .reach_ns = o->reach_ns,
					 .reach_spare = o->reach_spare};
	int status;

	s->reach.stop = o->reach_stop;
	if (o->reach)
		session_reach_plan(s, (unsigned int)o->passes);
	if (limits.duration_ns)
		limits.duration_ns += o->filters.delay_ns;
	if (o->dry_run)
		return record_dry_run(s, o);
	status = s->preload ? 0 : fit_rings(o, &opts);
	limits.ring_size = opts.ring_size;
	if (!status)
		status = begin(s, o, &opts, &out);
	if (status)
		return status;
	status = conclude(s, &out, run(s, c, &limits, o->several.on ? out.place.dir : -1));
	switch_release(&sw);
	output_close(&out);
	if (!status)
		then_unwind_begin(o->after, out.path, s->told_to_end);
	if (!status && !o->argv && o->output.pipe < 0 && !log_is_quiet())
		tell_growth(out.path);
	return status;
}
