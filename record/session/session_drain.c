/* session_drain.c - what has come is taken in, and those that had ended before leave */
#include "record/base/clock.h"
#include "record/session/interpreted.h"
#include "record/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define FREED_NS 25000000u /* how often frees that wait are checked */

static void on_mapped(void *ctx, pid_t pid, uint64_t time_ns, const struct mlk_mapping *m)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		process_mapped(p, &s->out, time_ns, m);
	if (p && interpreter_is_likely(m))
		session_look_for_interpreter(s, p, &p->maps, m, time_ns);
}

static void on_named(void *ctx, pid_t pid, uint32_t tid, const char *name)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		trace_out_fail(&s->out, threads_name(&p->threads, tid, name));
}

static void on_execed(void *ctx, pid_t pid, uint64_t time_ns)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		process_execed(p, &s->out, time_ns);
}

static void on_forked(void *ctx, const struct sideband_fork *fork)
{
	children_on_fork(ctx, fork);
}

/* Is a process heard since process @by was listened to again? */
static bool is_heard(void *ctx, pid_t by)
{
	const struct session *s = ctx;

	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->heard_by == by)
			return true;
	return false;
}

/* Each program maps itself first: one that has mapped nothing since its exec has not ended. */
static void on_left(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (!p || p->exited || p->maps.nr)
		return;
	p->deaf = sideband_add_again(s->sideband, &p->target) != 0;
	p->heard_by = pid;
	/* from here on there are notices, if at all */
	process_snapshot(p, &s->out, p->maps_changed ? p->maps_changed_ns : clock_now_ns());
	s->out.code_changed = true;
}

static void on_lost(void *ctx, uint64_t nr)
{
	struct session *s = ctx;

	s->out.maps_lost += nr;
	s->out.maps_missed = true;
	s->out.code_changed = true;
}

void session_read_sideband(struct session *s)
{
	const struct sideband_sink sink = {.mapped = on_mapped,
					   .named = on_named,
					   .execed = on_execed,
					   .forked = on_forked,
					   .left = on_left,
					   .lost = on_lost,
					   .ctx = s};

	s->maps_known_ns = clock_now_ns();
	if (s->sideband)
		sideband_read(s->sideband, &sink);
}

/* All that was in the rings has come: those that had ended before leave. */
static void remove_exited(struct session *s)
{
	size_t kept = 0;
	bool any;

	for (size_t i = 0; i < s->nr; i++) {
		struct process *p = s->all[i];

		process_forget_before(p, &s->out);
		if ((!p->leaves && !p->exited) || p->hold.seized) {
			s->all[kept++] = p;
			continue;
		}
		exec_judge(s, p);
		if (p->parent && !p->probed)
			children_missed(s, p);
		if (!p->exited)
			write_life(s, MLK_EXIT, p->target.pid, 0); /* the notice was lost */
		p->exited = true;
		process_flush_maps(p, &s->out);
		process_write_threads(p, &s->out);
		trace_out_fail(&s->out, interpreter_write(&p->interpreter, s->out.writer,
							  (uint32_t)p->target.pid));
		session_sample_ended(s, p);
		session_reach_leave(s, p);
		s->out.code_changed = true;
		if (s->last == p)
			s->last = NULL;
		process_release(p);
		free(p);
	}
	any = kept < s->nr;
	s->nr = kept;
	if (any && s->sideband)
		sideband_keep(s->sideband, is_heard, s);
}

/* Those that have ended by now leave when all that is in the rings has come. */
static void note_ended(struct session *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		struct process *p = s->all[i];

		if (s->probes && !p->ended && target_has_ended(&p->target))
			session_end_process(s, p);
		p->leaves = p->ended;
		p->before_new = false;
	}
}

/* Processes have ended: take in what they forked last.  Its notices were there before their ends
 * were in the ring, but maybe not yet when the notices were read last. */
static void take_last_forks(struct session *s)
{
	bool any = false;

	for (size_t i = 0; i < s->nr; i++)
		any |= s->all[i]->leaves || s->all[i]->exited;
	if (any)
		session_read_sideband(s);
}

bool session_drain_preload(struct session *s)
{
	if (preload_consume(s->preload, s->end_ns) == -EAGAIN)
		return false;
	note_ended(s);
	remove_exited(s);
	return true;
}

bool session_drain_probes(struct session *s)
{
	uint64_t now_ns = clock_now_ns();
	bool drained, all, takes_freed = now_ns >= s->freed_ns;

	note_ended(s);
	session_read_sideband(s);
	if (takes_freed) {
		probes_note_freed(s->probes);
		s->freed_ns = now_ns + FREED_NS;
	}
	drained = probes_consume(s->probes) != -EAGAIN;
	all = drained && probes_took_all(s->probes);
	if (all && now_ns > s->time_ns)
		s->time_ns = now_ns; /* all that was older has come */
	if (all && takes_freed)
		write_deferred_frees(s);
	children_look(s);
	leader_look(s);
	for (size_t i = 0; all && i < s->nr; i++)
		exec_follow(s, s->all[i]);
	if (all) {
		take_last_forks(s);
		remove_exited(s);
	}
	return drained;
}

bool session_drain(struct session *s)
{
	s->batch = 0;
	return s->backend->consume(s);
}

void session_drain_for(struct session *s, uint64_t limit_ns)
{
	const struct timespec moment = {.tv_nsec = 100000};
	uint64_t end_ns = clock_now_ns() + limit_ns;

	while (!s->out.err) {
		bool drained = session_drain(s);

		/* A record that another processor is still writing may be in the way. */
		if ((drained && (!s->probes || probes_took_all(s->probes))) ||
		    clock_now_ns() >= end_ns)
			break;
		if (drained)
			nanosleep(&moment, NULL);
	}
}
