/* session_finish.c - onto the file, again and again and for the last time */
#include "record/session/session.h"

#include <time.h>

#include "record/session/exec.h"
#include "record/session/leader.h"

#define LAST_TRIES 1000 /* of a millisecond or more */

void session_flush(struct session *s)
{
	struct mlk_losses losses;

	if (s->journal.err)
		return;
	for (size_t i = 0; i < s->nr; i++) {
		leader_follow(s, s->all[i]);
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
	losses.last_ns = s->losses_ns = trace_out_now_ns();
	mlk_writer_set_losses(s->journal.writer, &losses);
	trace_out_fail(&s->journal, mlk_writer_flush(s->journal.writer));
}

static void take_probes_out(struct session *s)
{
	probes_end(s->probes);
	for (size_t i = 0; i < s->nr; i++)
		session_drop_probes(s, s->all[i]);
	probes_settle(s->probes);
}

/* Read the rings to their end, and take the frees that are kept.  Probes of life still run: a
 * program that forks, ends or starts another may hold their end for a moment, and send what it kept
 * by itself; that comes with what is drained after this. */
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

	s->end_ns = trace_out_now_ns();
	if (s->preload)
		preload_stop(s->preload);
	else
		take_probes_out(s);
	s->detach_ns = trace_out_now_ns() - s->end_ns;
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
	trace_out_fail(&s->journal, overrun_list_flush(&s->findings, s->journal.writer));
	session_flush(s);
	err = mlk_writer_finish(s->journal.writer, s->journal.err ? MLK_END_ERROR : reason,
				s->end_ns);
	if (!s->journal.err)
		trace_out_fail(&s->journal, err);
}
