/* sample_memory.c - how much memory the recorded processes have, about each second */
#include <errno.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/session/session.h"
#include "record/target/memory_read.h"

#define FIRST_NS  4000000u    /* from a process's first sample to its second; then it doubles, */
#define FORKED_NS 62500000u   /* of one that was forked: there may be many, and short ones; */
#define STEP_NS	  1000000000u /* up to this */

#define SHARE	   1000	      /* walks through pages: this part of the time. doc/decisions/0039 */
#define MOST_SAVED 5000000    /* nanoseconds: after a pause not all may be walked through at once */
#define LATE_NS	   100000000u /* a sample waits no longer for its walk, */
#define LOOK_NS	   5000000u   /* and so long from one look to the next; */
#define END_NS	   200000000u /* the end of the recording waits no longer for walks */

/* Time goes on: what of it may be used for walks. */
static void allow_walks(struct session *s, uint64_t now_ns)
{
	struct session_memory *m = &s->memory;
	uint64_t since_ns = now_ns - (m->walked_ns ? m->walked_ns : s->start_ns);

	m->walked_ns = now_ns;
	m->walk_left_ns += (int64_t)(since_ns / SHARE);
	if (m->walk_left_ns > MOST_SAVED)
		m->walk_left_ns = MOST_SAVED;
}

static void add_sample(struct session *s, const struct mlk_memory *sample)
{
	if (!s->out.err)
		trace_out_fail(&s->out, memory_list_add(&s->memory.list, s->out.writer, sample));
}

/* The sample of @p that waits, if one does, goes as it is. */
static void add_waiting(struct session *s, struct process *p)
{
	if (!p->memory.waits)
		return;
	p->memory.waits = false;
	s->memory.nr_waiting--;
	add_sample(s, &p->memory.sample);
}

static struct walk_size size_of(const struct process *p, const struct mlk_memory *sample)
{
	return (struct walk_size){sample->value[MLK_MEMORY_RSS], p->nr_mappings};
}

/* Put what a walk told of @p into its sample that waits.  If that did not, it is one of its own. */
static void add_walked(struct session *s, struct process *p, const struct mlk_memory *walked)
{
	struct mlk_memory sample = *walked;

	sample.tgid = (uint32_t)p->target.pid;
	if (!walked->known)
		return; /* refused, or it has ended */
	if (!p->memory.waits) {
		add_sample(s, &sample);
		return;
	}
	for (int i = 0; i < MLK_MEMORY_NR; i++)
		if (walked->known >> i & 1)
			p->memory.sample.value[i] = walked->value[i];
	p->memory.sample.known |= walked->known;
}

/* If the walk is over, or is within @wait_ns, take what came of it. */
static void take_walk(struct session *s, uint64_t wait_ns)
{
	struct session_memory *m = &s->memory;
	struct process *p = m->walked;
	struct memory_walk walk;

	if (!m->walks || !memory_walker_take(m->walker, wait_ns, &walk))
		return;
	m->walks = false;
	m->walked = NULL;
	m->walk_left_ns -= (int64_t)walk.took_ns;
	if (!p)
		return; /* it has ended */
	walk_note(&p->memory.plan, &m->size, walk.took_ns, walk.sample.time_ns);
	add_walked(s, p, &walk.sample);
	add_waiting(s, p);
}

/* Have the pages of @p walked through.  False: that is not possible. */
static bool begin_walk(struct session *s, struct process *p)
{
	struct session_memory *m = &s->memory;
	int fd = memory_open_pages(&p->target);

	if (fd < 0)
		return false;
	if (!m->walker && memory_walker_new(&m->walker)) {
		close(fd);
		return false;
	}
	m->walks = true;
	m->walked = p;
	m->size = size_of(p, &p->memory.sample);
	memory_walker_ask(m->walker, fd);
	return true;
}

/* One after the other: those that wait are walked through, those that have waited for too long wait
 * no longer. */
static void serve_waiting(struct session *s, uint64_t now_ns)
{
	struct session_memory *m = &s->memory;

	for (size_t i = 0; i < s->nr && m->nr_waiting; i++) {
		struct process *p = s->all[(m->first + i) % s->nr];

		if (!p->memory.waits)
			continue;
		if (now_ns >= p->memory.sample.time_ns + LATE_NS)
			add_waiting(s, p);
		else if (!m->walks && (m->walk_left_ns < 0 || !begin_walk(s, p)))
			add_waiting(s, p);
	}
}

/* Is @p to be walked through for its @sample? */
static bool wants_walk(const struct session *s, const struct process *p,
		       const struct mlk_memory *sample)
{
	const struct walk_size size = size_of(p, sample);

	return s->memory.walk_left_ns >= 0 && s->memory.walked != p &&
	       sample->known >> MLK_MEMORY_RSS & 1 &&
	       walk_is_allowed(&p->memory.plan, &size, sample->time_ns);
}

static void take_sample(struct session *s, struct process *p)
{
	struct process_memory *m = &p->memory;
	struct mlk_memory sample;

	memory_read(&p->target, &sample);
	/* what was read may have been another process with its number */
	if (sample.error == ESRCH || target_is_reaped(&p->target)) {
		m->due_ns = UINT64_MAX;
		return; /* that it ends is told when it has */
	}
	add_waiting(s, p);
	session_sample_names(s, p, p->regions.wanted && m->step_ns);
	session_sample_regions(s, p);
	if (wants_walk(s, p, &sample)) {
		m->sample = sample;
		m->waits = true;
		s->memory.nr_waiting++;
	} else {
		add_sample(s, &sample);
	}
	session_look_at_pages(s, p);
	if (!m->step_ns)
		m->step_ns = p->parent ? FORKED_NS : FIRST_NS;
	m->due_ns = sample.time_ns + m->step_ns;
	m->step_ns = m->step_ns < STEP_NS / 2 ? m->step_ns * 2 : STEP_NS;
}

/* May it be looked at? One that is being born is not known yet, and one that waits for its probes
 * is to wait no longer. */
static bool is_there(const struct process *p)
{
	return !p->ended && !p->exited && p->target.pidfd >= 0 && !p->hold.seized;
}

static void sample_due(struct session *s, uint64_t now_ns)
{
	struct session_memory *m = &s->memory;
	uint64_t next_ns = UINT64_MAX;

	allow_walks(s, now_ns);
	/* each time another one is the first, which is walked through before time is up */
	m->first = s->nr ? (m->first + 1) % s->nr : 0;
	for (size_t i = 0; i < s->nr && !s->out.err; i++) {
		struct process *p = s->all[(m->first + i) % s->nr];

		if (is_there(p) && now_ns >= p->memory.due_ns)
			take_sample(s, p);
		if (is_there(p) && p->memory.due_ns < next_ns)
			next_ns = p->memory.due_ns;
	}
	/* there may be new processes until then */
	m->due_ns = next_ns < now_ns + FORKED_NS ? next_ns : now_ns + FORKED_NS;
}

uint64_t session_sample_memory(struct session *s, uint64_t now_ns)
{
	struct session_memory *m = &s->memory;

	take_walk(s, 0);
	if (now_ns >= m->due_ns)
		sample_due(s, now_ns);
	serve_waiting(s, now_ns);
	return m->nr_waiting && now_ns + LOOK_NS < m->due_ns ? now_ns + LOOK_NS : m->due_ns;
}

void session_sample_all(struct session *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		s->all[i]->memory.due_ns = 0;
		s->all[i]->regions.wanted = true;
	}
	s->memory.due_ns = 0;
	session_sample_memory(s, clock_now_ns());
}

void session_sample_ended(struct session *s, struct process *p)
{
	/* what has ended since the recording has, did so after its last sample */
	const struct mlk_memory sample = {.tgid = (uint32_t)p->target.pid,
					  .time_ns = s->end_ns ? s->end_ns : clock_now_ns(),
					  .error = ESRCH};

	session_sample_names(s, p, true);
	add_waiting(s, p);
	if (s->memory.walked == p)
		s->memory.walked = NULL;
	add_sample(s, &sample);
}

/* The walk that the recording does not wait for is a sample that could not be taken. */
static void note_unanswered(struct session *s)
{
	struct process *p = s->memory.walked;
	const struct mlk_memory sample = {
		.tgid = p ? (uint32_t)p->target.pid : 0, .time_ns = s->end_ns, .error = ETIME};

	if (!p)
		return; /* it has ended, of which the trace has a sample */
	add_waiting(s, p);
	add_sample(s, &sample);
	log_warn("the last PSS of process %d is missing: reading it waited for a change of its "
		 "mappings",
		 (int)p->target.pid);
}

void session_finish_memory(struct session *s)
{
	uint64_t now_ns = clock_now_ns(), until_ns = now_ns + END_NS;

	while (!s->out.err && s->memory.walks && now_ns < until_ns) {
		take_walk(s, until_ns - now_ns);
		now_ns = clock_now_ns();
		serve_waiting(s, now_ns);
	}
	/* a trace that ends early has no last sample, and says why */
	if (s->memory.walks && !s->out.err)
		note_unanswered(s);
	session_flush_memory(s);
}

void session_flush_memory(struct session *s)
{
	for (size_t i = 0; i < s->nr && s->memory.nr_waiting; i++)
		add_waiting(s, s->all[i]);
	if (!s->out.err)
		trace_out_fail(&s->out, memory_list_flush(&s->memory.list, s->out.writer));
}
