/* session_backend.c - the two sources of events, behind one table of functions each */
#include "record/session/session.h"

#include "mleak.h"
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

const struct backend backend_bpf = {.name = "bpf uprobes",
				    .probes = true,
				    .start = session_start_bpf,
				    .go = release_command,
				    .fd = bpf_fd,
				    .consume = session_drain_probes,
				    .losses = bpf_losses,
				    .explain_losses = explain_nothing,
				    .explain = explain_no_events,
				    .stop = detach_probes};

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

static void explain_unlooked(const struct session *s)
{
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

const struct backend backend_preload = {.name = "preload",
					.start = session_start_preload,
					.go = go_preloaded,
					.fd = preloaded_fd,
					.consume = session_drain_preload,
					.losses = preloaded_losses,
					.explain_losses = explain_unlooked,
					.explain = explain_no_preloaded_events,
					.stop = stop_preloaded};
