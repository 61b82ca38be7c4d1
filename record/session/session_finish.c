/* session_finish.c - onto the file, again and again and for the last time */
#include "record/base/clock.h"
#include "record/session/interpreted.h"
#include "record/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mleak.h"

#define LAST_TRIES 1000 /* of a millisecond or more */

void session_flush(struct session *s)
{
	struct mlk_losses losses;

	if (s->out.err)
		return;
	session_write_accounts(s, s->end_ns); /* it names threads */
	for (size_t i = 0; i < s->nr; i++) {
		leader_follow(s, s->all[i]);
		process_flush_maps(s->all[i], &s->out);
		process_write_threads(s->all[i], &s->out);
	}
	if (s->forgets && s->probes && s->nr)
		s->forgets = probes_forget_ended(s->probes);
	if (s->out.maps_missed) {
		s->out.maps_missed = false;
		s->out.code_changed = true;
	}
	session_own_losses(s, &losses);
	losses.first_ns = s->losses_ns ? s->losses_ns : s->start_ns;
	losses.last_ns = s->losses_ns = clock_now_ns();
	mlk_writer_set_losses(s->out.writer, &losses);
	if (s->memory.followed && s->memory.list.nr)
		trace_out_fail(&s->out, memory_list_flush(&s->memory.list, s->out.writer));
	trace_out_fail(&s->out, mlk_writer_flush_others(s->out.writer));
}

/* Read the rings to their end, and take the frees that are kept.  Probes of life still run: a
 * program that forks, ends or starts another may hold their end for a moment, and send what it kept
 * by itself; that comes with what is drained after this. */
static void drain_last(struct session *s)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	bool drained = false;

	for (int i = 0; i < LAST_TRIES && !s->out.err && !drained; i++) {
		if (i)
			nanosleep(&moment, NULL);
		s->freed_ns = 0;
		drained = session_drain(s) && probes_caught_up(s->probes);
	}
}

void session_finish(struct session *s, enum mlk_end reason)
{
	int err;

	session_reach_end(s);
	if (!s->looks)
		session_sample_all(s);
	s->end_ns = clock_now_ns();
	s->backend->stop(s);
	s->detach_ns = clock_now_ns() - s->end_ns;
	unprobed_tell(s);
	if (s->probes)
		drain_last(s);
	while (!s->out.err && !session_drain(s))
		;
	for (size_t i = 0; i < s->nr; i++) {
		exec_judge(s, s->all[i]);
		if (s->out.err)
			break;
		/* what changed before the end, from when it changed */
		process_flush_maps(s->all[i], &s->out);
		process_snapshot(s->all[i], &s->out, s->end_ns);
	}
	session_look_at_all_pages(s);
	trace_out_fail(&s->out, overrun_list_flush(&s->overruns, s->out.writer));
	session_finish_memory(s);
	session_write_interpreters(s);
	session_flush(s);
	if (!s->out.writer)
		return; /* the next trace could not be begun */
	err = mlk_writer_finish(s->out.writer, s->out.err ? MLK_END_ERROR : reason, s->end_ns);
	if (!s->out.err)
		trace_out_fail(&s->out, err);
}

void session_losses(const struct session *s, struct mlk_losses *losses)
{
	memset(losses, 0, sizeof(*losses));
	s->backend->losses(s, losses);
	losses->count[MLK_LOST_MAPS] += s->out.maps_lost;
	losses->count[MLK_LOST_MODULE] += s->out.modules.unreadable;
	losses->count[MLK_LOST_EXEC] += s->missed.nr;
	losses->count[MLK_LOST_CALLERS] += s->codes.ended;
	losses->count[MLK_LOST_CODE] += s->codes.unnamed;
	losses->skipped[MLK_SKIPPED_CHILD] += s->children;
	if (s->follow)
		losses->skipped[MLK_SKIPPED_CHILD] = s->running;
	losses->skipped[MLK_SKIPPED_PAGES] = s->pages_left_out;
}

bool session_is_quiet(const struct session *s)
{
	struct mlk_losses losses;

	if (s->allocs || s->frees)
		return false;
	session_losses(s, &losses);
	if (losses.count[MLK_LOST_ALLOC] || losses.count[MLK_LOST_FREE])
		return false;
	for (int kind = 0; kind < MLK_SKIP_NR; kind++)
		if (losses.skipped[kind] && kind != MLK_SKIPPED_CHILD)
			return false;
	return true;
}

void session_explain_quiet(struct session *s)
{
	if (!s->quiet_told && s->nr)
		s->backend->explain(s, s->all[0]);
	s->quiet_told |= s->nr > 0;
}

void session_note_missed(struct session *s, const struct process *p, const char *why)
{
	unrecorded_note(&s->missed, p->target.pid,
			threads_find(&p->threads, (uint32_t)p->target.pid), why);
}
