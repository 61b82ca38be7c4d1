/* session_drain.c - what has come is taken in, and those that had ended before leave */
#include "record/base/clock.h"
#include "record/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define FREED_NS 25000000u /* how often frees that wait are checked */

int session_fd(const struct session *s, int i)
{
	if (!s->preload)
		return probes_fd(s->probes, i);
	/* No probe tells of the command's end: its own descriptor does. */
	return i == 0 ? preload_fd(s->preload) : i == 1 ? s->all[0]->target.pidfd : -1;
}

static void on_mapped(void *ctx, pid_t pid, uint64_t time_ns, const struct mlk_mapping *m)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		process_mapped(p, &s->journal, time_ns, m);
}

static void on_named(void *ctx, pid_t pid, uint32_t tid, const char *name)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		trace_out_fail(&s->journal, threads_name(&p->threads, tid, name));
}

static void on_execed(void *ctx, pid_t pid, uint64_t time_ns)
{
	struct session *s = ctx;
	struct process *p = session_newest(s, pid);

	if (p)
		process_execed(p, &s->journal, time_ns);
}

static void on_forked(void *ctx, const struct sideband_fork *fork)
{
	children_on_fork(ctx, fork);
}

static void on_lost(void *ctx, uint64_t nr)
{
	struct session *s = ctx;

	s->journal.maps_lost += nr;
	s->journal.maps_missed = true;
	s->journal.code_changed = true;
}

void session_read_sideband(struct session *s)
{
	const struct sideband_sink sink = {.mapped = on_mapped,
					   .named = on_named,
					   .execed = on_execed,
					   .forked = on_forked,
					   .lost = on_lost,
					   .ctx = s};

	s->maps_known_ns = clock_now_ns();
	if (s->sideband)
		sideband_read(s->sideband, &sink);
}

static void write_exit(struct session *s, const struct process *p)
{
	const struct mlk_event ev = {.kind = MLK_EXIT,
				     .tgid = (uint32_t)p->target.pid,
				     .tid = (uint32_t)p->target.pid,
				     .time_ns = s->time_ns};

	trace_out_fail(&s->journal, tally_note(&s->tally, &ev));
	trace_out_fail(&s->journal, mlk_writer_event(s->journal.writer, &ev));
}

/* All that was in the rings has come: those that had ended before leave. */
static void remove_exited(struct session *s, const bool *had_ended)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr; i++) {
		struct process *p = s->all[i];

		process_forget_before(p, &s->journal);
		if ((!had_ended[i] && !p->exited) || p->hold.seized) {
			s->all[kept++] = p;
			continue;
		}
		exec_judge(s, p);
		if (p->parent && !p->probed)
			children_missed(s, p);
		if (!p->exited)
			write_exit(s, p); /* the notice was lost */
		p->exited = true;
		process_flush_maps(p, &s->journal);
		process_write_threads(p, &s->journal);
		s->journal.code_changed = true;
		if (s->last == p)
			s->last = NULL;
		process_release(p);
		free(p);
	}
	s->nr = kept;
}

/* Which have ended by now?  NULL: no memory, or none. */
static bool *note_ended(struct session *s, size_t *nr)
{
	bool *ended = calloc(s->nr + 1, sizeof(*ended));

	*nr = s->nr;
	for (size_t i = 0; ended && i < s->nr; i++) {
		if (!s->all[i]->ended && target_has_ended(&s->all[i]->target))
			session_end_process(s, s->all[i]);
		ended[i] = s->all[i]->ended;
	}
	return ended;
}

static bool drain_preload(struct session *s)
{
	bool *ended;

	if (preload_consume(s->preload, s->end_ns) == -EAGAIN)
		return false;
	ended = calloc(s->nr + 1, sizeof(*ended));
	for (size_t i = 0; ended && i < s->nr; i++)
		ended[i] = s->all[i]->ended;
	if (ended)
		remove_exited(s, ended);
	free(ended);
	return true;
}

static bool drain_probes(struct session *s)
{
	uint64_t now_ns = clock_now_ns();
	size_t nr_before;
	bool drained, all, takes_freed = now_ns >= s->freed_ns, *ended, *grown;

	ended = note_ended(s, &nr_before);
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
	grown = all && ended ? realloc(ended, (s->nr + 1) * sizeof(*ended)) : NULL;
	if (grown) {
		ended = grown;
		for (size_t i = nr_before; i < s->nr; i++)
			ended[i] = false;
		remove_exited(s, ended);
	}
	free(ended);
	return drained;
}

bool session_drain(struct session *s)
{
	s->batch = 0;
	return s->preload ? drain_preload(s) : drain_probes(s);
}

void session_drain_for(struct session *s, uint64_t limit_ns)
{
	const struct timespec moment = {.tv_nsec = 100000};
	uint64_t end_ns = clock_now_ns() + limit_ns;

	while (!s->journal.err) {
		bool drained = session_drain(s);

		/* A record that another processor is still writing may be in the way. */
		if ((drained && (!s->probes || probes_took_all(s->probes))) ||
		    clock_now_ns() >= end_ns)
			break;
		if (drained)
			nanosleep(&moment, NULL);
	}
}
