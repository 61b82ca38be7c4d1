/* session_reach.c - snapshots of the pointers in the memory of all processes */
#include <errno.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/session/session.h"

#define APART_NS 50000000u /* between passes: longer than a pointer stays in registers alone */

/* May its memory be looked at? */
static bool is_there(const struct process *p)
{
	return !p->ended && !p->exited && p->target.pidfd >= 0 && !p->hold.seized;
}

static void tell_unread(const struct process *p, int err, unsigned int passes)
{
	const char *what = passes ? "not all" : "not";

	if (err == -ESRCH || target_has_ended(&p->target) || target_is_ending(&p->target))
		log_warn("the pointers of process %d are %s in the trace: it ended meanwhile",
			 (int)p->target.pid, what);
	else
		log_warn("the pointers of process %d are %s in the trace: %s", (int)p->target.pid,
			 what, mlk_strerror(err));
}

/* Begin with the next process that is there.  Returns whether there is one. */
static bool begin_next(struct session *s)
{
	struct session_reach *r = &s->reach;

	for (size_t i = 0; !r->now && i < s->nr; i++) {
		struct process *p = s->all[i];
		const struct reach_opts opts = {.target = &p->target,
						.snapshot = r->snapshot,
						.first_pass = p->passes + 1,
						.passes = r->passes,
						.apart_ns = APART_NS};
		int err;

		if (!is_there(p) || p->snapshot == r->snapshot)
			continue;
		p->snapshot = r->snapshot;
		r->of = p;
		err = reach_snapshot_begin(&r->now, &opts);
		if (err)
			tell_unread(p, err, 0);
	}
	return r->now;
}

static void end_one(struct session *s)
{
	struct session_reach *r = &s->reach;

	r->of->passes += reach_snapshot_result(r->now)->passes;
	reach_snapshot_end(r->now);
	r->now = NULL;
	r->of = NULL;
}

bool session_reach_begin(struct session *s)
{
	struct session_reach *r = &s->reach;

	if (!r->passes || r->now)
		return r->now;
	r->snapshot++;
	return begin_next(s);
}

bool session_reach_step(struct session *s)
{
	struct session_reach *r = &s->reach;
	int more;

	if (!r->now)
		return false;
	more = s->out.err ? s->out.err : reach_snapshot_step(r->now, s->out.writer);
	if (more > 0)
		return true;
	if (more < 0 && !s->out.err && mlk_writer_flush(s->out.writer))
		trace_out_fail(&s->out, more);
	else if (more < 0 && !s->out.err)
		tell_unread(r->of, more, reach_snapshot_result(r->now)->passes);
	end_one(s);
	return !s->out.err && begin_next(s);
}

void session_reach_leave(struct session *s, const struct process *p)
{
	if (s->reach.now && s->reach.of == p) {
		tell_unread(p, -ESRCH, reach_snapshot_result(s->reach.now)->passes);
		end_one(s);
	}
}

void session_reach_end(struct session *s)
{
	if (s->reach.now)
		end_one(s);
}
