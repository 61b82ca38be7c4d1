/* session.c - see session.h */
#include "record/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/children.h"
#include "record/exec.h"
#include "record/take.h"

#define LAST_TRIES 1000	     /* of a millisecond or more */
#define FREED_NS   25000000u /* how often frees that wait are looked at */

struct process *session_find(struct session *s, pid_t pid)
{
	if (s->last && s->last->target.pid == pid && !s->last->exited)
		return s->last;
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->target.pid == pid && !s->all[i]->exited)
			return s->last = s->all[i];
	return NULL;
}

struct process *session_newest(struct session *s, pid_t pid)
{
	for (size_t i = s->nr; i-- > 0;)
		if (s->all[i]->target.pid == pid)
			return s->all[i];
	return NULL;
}

struct process *session_append(struct session *s)
{
	struct process *p = calloc(1, sizeof(*p));

	if (p && s->nr == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct process **all = realloc(s->all, room * sizeof(*all));

		if (!all) {
			free(p);
			p = NULL;
		} else {
			s->all = all;
			s->room = room;
		}
	}
	if (!p) {
		journal_fail(&s->journal, -ENOMEM);
		return NULL;
	}
	p->target.pidfd = -1;
	p->target.helper = s->helper;
	s->all[s->nr++] = p;
	return p;
}

static void add_name(struct session *s, const struct target *t)
{
	size_t len = strlen(s->named);

	snprintf(s->named + len, sizeof(s->named) - len, "%s%s (pid %d)", len ? ", " : "", t->comm,
		 (int)t->pid);
	s->nr_named++;
}

int session_add_pid(struct session *s, pid_t pid)
{
	struct process *p;
	int err;

	if (session_newest(s, pid))
		return 0;
	p = session_append(s);
	if (!p) {
		log_error("cannot watch process %d: %s", (int)pid, strerror(ENOMEM));
		return -ENOMEM;
	}
	err = target_open(&p->target, pid);
	if (!s->pid) {
		s->pid = pid;
		memcpy(s->comm, p->target.comm, sizeof(s->comm));
	}
	if (!err)
		add_name(s, &p->target);
	return err;
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
		journal_fail(&s->journal, threads_name(&p->threads, tid, name));
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

	s->maps_known_ns = journal_now_ns();
	if (s->sideband)
		sideband_read(s->sideband, &sink);
}

void session_note_gap(struct session *s, uint64_t gap_ns)
{
	s->gaps.nr++;
	if (gap_ns > s->gaps.longest_ns)
		s->gaps.longest_ns = gap_ns;
}

void session_note_missed(struct session *s, const struct process *p, const char *why)
{
	missed_note(&s->missed, p->target.pid, threads_find(&p->threads, (uint32_t)p->target.pid),
		    why);
}

void session_end_process(struct session *s, struct process *p)
{
	p->ended = true;
	s->forgets = true;
	if (s->probes)
		probes_drop(s->probes, &p->links);
}

static void write_exit(struct session *s, const struct process *p)
{
	const struct mlk_event ev = {.kind = MLK_EXIT,
				     .tgid = (uint32_t)p->target.pid,
				     .tid = (uint32_t)p->target.pid,
				     .time_ns = s->time_ns};

	journal_fail(&s->journal, mlk_writer_event(s->journal.writer, &ev));
}

/* All that was in the ring has come: those that had ended before leave. */
static void bury(struct session *s, const bool *had_ended)
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
		if (!s->all[i]->ended && process_has_ended(s->all[i]))
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
		bury(s, ended);
	free(ended);
	return true;
}

bool session_drain(struct session *s)
{
	uint64_t now_ns = journal_now_ns();
	size_t nr_before;
	bool drained, takes_freed = now_ns >= s->freed_ns, *ended, *grown;

	s->batch = 0;
	if (s->preload)
		return drain_preload(s);
	ended = note_ended(s, &nr_before);
	session_read_sideband(s);
	if (takes_freed) {
		probes_note_freed(s->probes);
		s->freed_ns = now_ns + FREED_NS;
	}
	drained = probes_consume(s->probes) != -EAGAIN;
	if (drained && now_ns > s->time_ns)
		s->time_ns = now_ns; /* all that was older has come */
	if (drained && takes_freed)
		take_freed(s);
	children_look(s);
	for (size_t i = 0; drained && i < s->nr; i++)
		exec_follow(s, s->all[i]);
	grown = drained && ended ? realloc(ended, (s->nr + 1) * sizeof(*ended)) : NULL;
	if (grown) {
		ended = grown;
		for (size_t i = nr_before; i < s->nr; i++)
			ended[i] = false;
		bury(s, ended);
	}
	free(ended);
	return drained;
}

void session_drain_for(struct session *s, uint64_t limit_ns)
{
	uint64_t end_ns = journal_now_ns() + limit_ns;

	while (!session_drain(s) && !s->journal.err && journal_now_ns() < end_ns)
		;
}

bool session_is_over(const struct session *s)
{
	return !s->nr;
}

bool session_is_urgent(const struct session *s)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->exec.since_ns || s->all[i]->hold.seized ||
		    (s->all[i]->parent && !s->all[i]->probed))
			return true;
	return false;
}

void session_record_all_threads(struct session *s)
{
	if (s->probes)
		probes_all_threads(s->probes);
}

/* Where the main thread has ended, the probes go by another thread: find a new one if that ended.
 */
static void follow_thread(struct session *s, struct process *p)
{
	pid_t before = p->target.task;

	if (before == p->target.pid || !s->probes)
		return;
	target_find_task(&p->target);
	if (p->target.task == before)
		return;
	probes_drop(s->probes, &p->links);
	probes_place(s->probes, &p->links, &p->target, &p->allocators);
}

void session_flush(struct session *s)
{
	struct mlk_losses losses;

	if (s->journal.err)
		return;
	for (size_t i = 0; i < s->nr; i++) {
		follow_thread(s, s->all[i]);
		process_flush_maps(s->all[i], &s->journal);
		process_write_threads(s->all[i], &s->journal);
	}
	if (s->forgets && s->probes && s->nr)
		s->forgets = probes_forget_ended(s->probes);
	if (s->journal.maps_missed) {
		s->journal.maps_missed = false;
		s->journal.code_changed = true;
	}
	session_losses(s, &losses);
	losses.first_ns = s->losses_ns ? s->losses_ns : s->start_ns;
	losses.last_ns = s->losses_ns = journal_now_ns();
	mlk_writer_set_losses(s->journal.writer, &losses);
	journal_fail(&s->journal, mlk_writer_flush(s->journal.writer));
}

static void take_probes_out(struct session *s)
{
	probes_end(s->probes);
	for (size_t i = 0; i < s->nr; i++)
		probes_drop(s->probes, &s->all[i]->links);
	probes_settle(s->probes);
}

/* Read the ring to its end, and take the frees that are kept.  Probes of life still run: a program
 * that forks, ends or starts another may hold the ring's end for a moment, and send what it kept by
 * itself; that comes with what is drained after this. */
static void drain_last(struct session *s)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	bool drained = false;

	for (int i = 0; i < LAST_TRIES && !s->journal.err && !drained; i++) {
		if (i)
			nanosleep(&moment, NULL);
		s->freed_ns = 0;
		drained = session_drain(s) && probes_caught_up(s->probes);
	}
}

void session_finish(struct session *s, enum mlk_end reason)
{
	int err;

	s->end_ns = journal_now_ns();
	if (s->preload)
		preload_stop(s->preload);
	else
		take_probes_out(s);
	s->detach_ns = journal_now_ns() - s->end_ns;
	if (s->probes)
		drain_last(s);
	while (!s->journal.err && !session_drain(s))
		;
	for (size_t i = 0; i < s->nr; i++) {
		exec_judge(s, s->all[i]);
		if (s->journal.err)
			break;
		/* what changed before the end, from when it changed */
		process_flush_maps(s->all[i], &s->journal);
		process_snapshot(s->all[i], &s->journal, s->end_ns);
	}
	journal_fail(&s->journal, findings_flush(&s->findings, s->journal.writer));
	session_flush(s);
	err = mlk_writer_finish(s->journal.writer, s->journal.err ? MLK_END_ERROR : reason,
				s->end_ns);
	if (!s->journal.err)
		journal_fail(&s->journal, err);
}

void session_release(struct session *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (s->probes)
			probes_drop(s->probes, &s->all[i]->links);
		process_release(s->all[i]);
		free(s->all[i]);
	}
	free(s->all);
	probes_free(s->probes);
	preload_free(s->preload);
	sideband_free(s->sideband);
	mlk_writer_free(s->journal.writer);
	modules_release(&s->journal.modules);
	code_release(&s->code);
}
