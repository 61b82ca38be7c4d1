/* session_reach.c - snapshots of the pointers in the memory of all processes */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/privilege/privileges.h"
#include "record/ptrace/tracer.h"
#include "record/session/session.h"

#define ALONE_NS 250000000u /* how long other threads may take to end */
#define APART_NS 50000000u  /* between passes: longer than a pointer stays in registers alone */

#define USUAL_PASSES 3
#define MOST_PASSES  10 /* of those that were not asked for */

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

static bool begin(struct session *s, struct process *p, const struct reach_opts *opts)
{
	struct session_reach *r = &s->reach;
	int err = reach_snapshot_begin(&r->now, opts);

	p->snapshot = opts->snapshot;
	r->of = p;
	if (err)
		tell_unread(p, err, 0);
	return !err;
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
						.most_passes = r->most_passes,
						.apart_ns = APART_NS,
						.stop = r->stop,
						.regs = r->regs,
						/* of one that we started all are recorded */
						.heap = !p->target.started};

		if (is_there(p) && !p->exit_ns && p->snapshot < r->snapshot)
			begin(s, p, &opts);
	}
	return r->now;
}

/* Let @p, which is held, end. */
static void let_end(struct session *s, struct process *p)
{
	p->exit_ns = 0;
	if (s->tracer)
		tracer_let_go(s->tracer, p->target.pid, false);
}

/* Has @p, which is held at its end, no thread but the main one any more? */
static bool is_alone(const struct process *p)
{
	char text[2048];
	const char *at;
	int nr = 0;

	proc_read(text, sizeof(text), "/proc/%d/status", (int)p->target.pid);
	at = strstr(text, "\nThreads:");
	return at && sscanf(at + 9, "%d", &nr) == 1 && nr == 1;
}

/* Begin with a process that is held at its end.  One whose main thread alone ends goes on, and is
 * read when the recording ends.  Returns whether one is held. */
static bool begin_at_exit(struct session *s)
{
	struct session_reach *r = &s->reach;
	bool held = false;

	for (size_t i = 0; !r->now && i < s->nr; i++) {
		struct process *p = s->all[i];
		/* nobody changes it any more: once is enough */
		const struct reach_opts opts = {.target = &p->target,
						.snapshot = r->snapshot + 1,
						.first_pass = p->passes + 1,
						.passes = 1,
						.regs = r->regs,
						.still = true};

		if (!p->exit_ns)
			continue;
		if (is_alone(p) ? !begin(s, p, &opts) : clock_now_ns() > p->exit_ns + ALONE_NS)
			let_end(s, p);
		held |= p->exit_ns != 0;
	}
	return r->now || held;
}

/* Say how long it was stopped, if it was to be. */
static void tell_stop(const struct session *s)
{
	const struct reach_result *result = reach_snapshot_result(s->reach.now);
	const struct target *t = &s->reach.of->target;
	int err = result->stop_err;

	if (result->stopped_ns)
		log_info("process %d was stopped for %.1f ms, to copy %.1f MiB of its memory",
			 (int)t->pid, (double)result->stopped_ns / 1e6,
			 (double)result->read_bytes / (1 << 20));
	if (!err || target_has_ended(t))
		return;
	log_warn("process %d was not stopped, its memory was read while it ran: %s", (int)t->pid,
		 err == -EFBIG ? "a copy would take more than half of the memory that is available"
		 : err == -ETIMEDOUT	      ? "a thread did not stop within 250 ms"
		 : err == -ENOSPC	      ? "it grew meanwhile"
		 : err == -EPERM && s->tracer ? "mleak traces it until the recording ends"
		 : err == -EPERM	      ? privileges_no_ptrace()
					      : mlk_strerror(err));
}

static void end_one(struct session *s)
{
	struct session_reach *r = &s->reach;
	const struct reach_result *result = reach_snapshot_result(r->now);
	int err = result->smaps_err;

	if (result->heap_err && !target_is_ending(&r->of->target))
		log_warn("blocks of process %d from before the recording are not judged: %s",
			 (int)r->of->target.pid,
			 result->heap_err == -E2BIG ? "there are too many"
						    : mlk_strerror(result->heap_err));
	if (err && !target_is_ending(&r->of->target))
		log_warn("where the resident memory of process %d is is not in the trace: %s",
			 (int)r->of->target.pid,
			 err == -E2BIG ? "its pages are in too many pieces" : mlk_strerror(err));

	tell_stop(s);
	r->of->passes += reach_snapshot_result(r->now)->passes;
	/* of one that came to its end meanwhile another snapshot follows */
	if (r->of->exit_ns && r->of->snapshot > r->snapshot)
		let_end(s, r->of);
	reach_snapshot_end(r->now);
	r->now = NULL;
	r->of = NULL;
}

void session_reach_plan(struct session *s, unsigned int passes)
{
	s->reach.passes = passes ? passes : USUAL_PASSES;
	s->reach.most_passes = passes ? passes : MOST_PASSES;
}

void session_reach_open(struct session *s)
{
	int err = s->reach.passes ? task_regs_open(&s->reach.regs) : 0;

	if (err && s->probes)
		log_warn("the registers of threads cannot be read (%s): what only those hold will "
			 "seem lost",
			 mlk_strerror(err));
	if (!s->reach.passes || !s->command || s->tracer)
		return;
	err = tracer_attach_command(&s->tracer, s->command);
	if (err)
		log_warn("the memory cannot be read when the command ends by itself: %s",
			 err == -EPERM ? privileges_no_ptrace() : mlk_strerror(err));
}

bool session_reach_begin(struct session *s)
{
	struct session_reach *r = &s->reach;

	if (!r->passes || r->now)
		return r->now;
	r->snapshot++;
	return begin_next(s);
}

void session_reach_at_exit(struct session *s, pid_t pid)
{
	struct process *p = s->reach.passes ? session_newest(s, pid) : NULL;

	if (p && is_there(p))
		p->exit_ns = clock_now_ns();
	else
		tracer_let_go(s->tracer, pid, false);
}

int session_reach_fd(const struct session *s)
{
	return reach_snapshot_fd(s->reach.now);
}

bool session_reach_step(struct session *s)
{
	struct session_reach *r = &s->reach;
	int more;

	if (!r->now)
		return begin_at_exit(s);
	more = s->out.err ? s->out.err : reach_snapshot_step(r->now, s->out.writer);
	if (more > 0)
		return true;
	if (more < 0 && !s->out.err && mlk_writer_flush(s->out.writer))
		trace_out_fail(&s->out, more);
	else if (more < 0 && !s->out.err)
		tell_unread(r->of, more, reach_snapshot_result(r->now)->passes);
	else if (!more)
		r->taken++;
	end_one(s);
	return !s->out.err && (begin_at_exit(s) || begin_next(s));
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

void session_reach_close(struct session *s)
{
	session_reach_end(s);
	task_regs_close(s->reach.regs);
	s->reach.regs = NULL;
}
