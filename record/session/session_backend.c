/* session_backend.c - the two sources of events, behind one table of functions each */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "record/inject/inject.h"
#include "record/preload/preload_choices.h"
#include "record/session/interpreted.h"
#include "record/session/no_events.h"
#include "record/session/session.h"
#include "record/session/session_golang.h"

#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/ptrace/launch.h"
#include "record/ptrace/tracer.h"

static void release_command(struct session *s)
{
	if (s->command && s->tracer)
		tracer_release(s->tracer);
	else if (s->command)
		launch_release(s->command);
}

static int bpf_fd(const struct session *s, int i)
{
	return probes_fd(s->probes, i);
}

static void bpf_losses(const struct session *s, struct mlk_losses *losses)
{
	probes_losses(s->probes, losses);
}

static void explain_nothing(const struct session *s)
{
	(void)s;
}

static void explain_no_events(const struct session *s, const struct process *p)
{
	(void)s;
	no_events_explain(&p->target, &p->allocators, p->cpu_ticks);
}

static void detach_probes(struct session *s)
{
	probes_end(s->probes);
	for (size_t i = 0; i < s->nr; i++)
		session_drop_probes(s, s->all[i]);
	probes_settle(s->probes);
}

static int choose_probed(struct session *s, const struct choice *choice, char *why)
{
	return probes_choose(s->probes, choice, why);
}

static void count_probed(const struct session *s, struct choice_counts *counts)
{
	probes_count_choices(s->probes, counts);
}

const struct backend backend_bpf = {.name = "bpf uprobes",
				    .probes = true,
				    .start = session_start_bpf,
				    .go = release_command,
				    .fd = bpf_fd,
				    .consume = session_drain_probes,
				    .losses = bpf_losses,
				    .explain_losses = explain_nothing,
				    .explain = explain_no_events,
				    .stop = detach_probes,
				    .choose = choose_probed,
				    .count_choices = count_probed};

static void go_preloaded(struct session *s)
{
	preload_go(s->preload);
}

/* No probe tells of the command's end: its own descriptor does. */
static int preloaded_fd(const struct session *s, int i)
{
	return i == 0 ? preload_fd(s->preload) : i == 1 ? s->all[0]->target.pidfd : -1;
}

static void preloaded_losses(const struct session *s, struct mlk_losses *losses)
{
	preload_losses(s->preload, losses);
}

static void explain_preloaded(const struct session *s)
{
	preload_tell_lost(s->preload);
	preload_tell_unlooked(s->preload, s->pid);
}

static void explain_no_preloaded_events(const struct session *s, const struct process *p)
{
	(void)s;
	log_warn("no event in process %d so far: it allocates nothing, or uses an "
		 "allocator of its own, which a preloaded library does not see",
		 (int)p->target.pid);
}

static void stop_preloaded(struct session *s)
{
	preload_stop(s->preload);
}

static int choose_preloaded(struct session *s, const struct choice *choice, char *why)
{
	return preload_choose(s->preload, choice, why);
}

static void count_preloaded(const struct session *s, struct choice_counts *counts)
{
	preload_count_choices(s->preload, counts);
}

const struct backend backend_preload = {.name = "preload",
					.start = session_start_preload,
					.go = go_preloaded,
					.fd = preloaded_fd,
					.consume = session_drain_preload,
					.losses = preloaded_losses,
					.explain_losses = explain_preloaded,
					.explain = explain_no_preloaded_events,
					.stop = stop_preloaded,
					.choose = choose_preloaded,
					.count_choices = count_preloaded};

static void stop_nothing(struct session *s)
{
	(void)s;
}

static void explain_no_injected_events(const struct session *s, const struct process *p)
{
	(void)s;
	no_events_explain(&p->target, &p->allocators, p->cpu_ticks);
}

const struct backend backend_inject = {.name = "inject",
				       .start = session_start_inject,
				       .go = stop_nothing,
				       .fd = preloaded_fd,
				       .consume = session_drain_preload,
				       .losses = preloaded_losses,
				       .explain_losses = explain_nothing,
				       .explain = explain_no_injected_events,
				       .stop = session_stop_inject};

static int no_fd(const struct session *s, int i)
{
	(void)s, (void)i;
	return -1;
}

static bool nothing_waits(struct session *s)
{
	(void)s;
	return true;
}

static void no_losses(const struct session *s, struct mlk_losses *losses)
{
	(void)s, (void)losses;
}

static void explain_no_look(const struct session *s, const struct process *p)
{
	(void)s, (void)p;
}

const struct backend backend_look = {.name = MLK_BACKEND_MEMORY,
				     .start = session_start_look,
				     .go = stop_nothing,
				     .fd = no_fd,
				     .consume = nothing_waits,
				     .losses = no_losses,
				     .explain_losses = explain_nothing,
				     .explain = explain_no_look,
				     .stop = stop_nothing};

/* The process that forked @p, as it says; or the command, if that is none of ours. */
static struct process *parent_of(struct session *s, pid_t parent)
{
	struct process *p = session_newest(s, parent);

	return p ? p : session_newest(s, s->pid);
}

/* It is met while it waits; its birth is written when the events have come so far. */
static bool met(void *ctx, pid_t pid, pid_t parent)
{
	struct session *s = ctx;
	struct process *p = session_append(s), *from;

	if (!p)
		return false;
	from = parent_of(s, parent);
	p->target.pid = p->target.task = pid;
	p->target.pidfd = proc_pidfd(pid);
	p->parent = from && from != p ? from->target.pid : s->pid;
	p->probed = true;
	s->children++;
	return true;
}

/* It was the last to be met. */
static void unmet(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p || p != s->all[s->nr - 1])
		return;
	s->nr--;
	s->children--;
	process_release(p);
	free(p);
}

/* It may have rights that the recorder gave up, but not the helper. */
static int read_all_maps(void *ctx, pid_t pid, struct maps *maps)
{
	const struct session *s = ctx;
	const struct target t = {.pid = pid, .task = pid, .helper = s->helper};

	return target_read_maps(&t, maps);
}

static uint64_t start_of(void *ctx, pid_t pid)
{
	const struct session *s = ctx;
	const struct target t = {.pid = pid, .task = pid, .helper = s->helper};

	return target_auxv(&t, AT_RANDOM); /* on its stack */
}

static int open_program(void *ctx, pid_t pid)
{
	const struct session *s = ctx;
	const struct target t = {.pid = pid, .task = pid, .helper = s->helper};

	return target_open_file(&t, HELPER_EXE);
}

static void golang(void *ctx, pid_t pid, struct event_go *go)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		session_find_golang(p, go);
}

/* If @p runs another program than when its mappings were read last, names of generated code from
 * before do not hold. */
static void look_at_program(const struct session *s, struct process *p)
{
	uint32_t program = preload_program_of(s->preload, p->target.pid);
	uint32_t before = p->interpreter.program;

	if (!before || before == program)
		return;
	perf_map_execed(&p->perf_map);
	jitdump_execed(&p->jitdump);
}

static bool read_maps(void *ctx, pid_t pid, struct maps *maps)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p)
		return false;
	target_describe(&p->target); /* another program may have been started by exec */
	if (pid == s->pid)
		memcpy(s->comm, p->target.comm, sizeof(s->comm));
	if (target_read_maps(&p->target, maps))
		return false;
	maps_keep_code(maps);
	inject_leave_out(maps);
	look_at_program(s, p);
	jitdump_take_markers(&p->jitdump, &p->target, maps);
	if (s->inject)
		session_look_for_allocators(s, p, maps);
	for (size_t i = 0; i < maps->nr; i++)
		trace_out_fail(&s->out, module_table_identify(&s->out.modules, &p->target,
							      s->out.writer, &maps->v[i]));
	session_look_for_interpreter(s, p, maps, NULL, clock_now_ns());
	return true;
}

static void mapped(void *ctx, uint64_t time_ns, pid_t pid, struct maps *maps)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p)
		return;
	process_set_maps(p, &s->out, time_ns, maps);
	/* it may run another program */
	trace_out_fail(&s->out, threads_name(&p->threads, (uint32_t)pid, p->target.comm));
}

static void generated(void *ctx, uint64_t time_ns, pid_t pid, const struct maps *maps)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	/* one that has not come yet is given all its mappings then */
	if (p && p->maps.nr)
		process_generated(p, &s->out, time_ns > p->born_ns ? time_ns : p->born_ns, maps);
}

static void came(void *ctx, uint64_t time_ns, pid_t pid, struct maps *maps)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p)
		return;
	p->born_ns = s->time_ns = time_ns;
	p->announced = true;
	process_set_maps(p, &s->out, time_ns, maps);
	/* A child often gets a name of its own just after its start. */
	trace_out_fail(&s->out, threads_claim(&p->threads, (uint32_t)pid, p->target.comm));
	trace_out_fail(&s->out, threads_see(&p->threads, (uint32_t)pid));
	write_life(s, MLK_FORK, pid, p->parent);
}

static void named(void *ctx, pid_t pid, uint32_t tid, const char *name)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p)
		return;
	trace_out_fail(&s->out, threads_claim(&p->threads, tid, name));
	trace_out_fail(&s->out, threads_see(&p->threads, tid)); /* it may be only counted */
}

static void ended(void *ctx, uint64_t time_ns, pid_t pid)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p)
		return;
	s->time_ns = time_ns;
	preload_accounts_name(preload_accounts(s->preload), (uint32_t)pid);
	session_end_process(s, p);
}

struct preload_sink session_sink(struct session *s)
{
	return (struct preload_sink){.event = write_event_at,
				     .named = named,
				     .met = met,
				     .unmet = unmet,
				     .read_all_maps = read_all_maps,
				     .start_of = start_of,
				     .open_program = open_program,
				     .golang = golang,
				     .read_maps = read_maps,
				     .came = came,
				     .mapped = mapped,
				     .generated = generated,
				     .ended = ended,
				     .ctx = s};
}
