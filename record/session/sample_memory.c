/* sample_memory.c - how much memory the recorded processes have, about each second */
#include <errno.h>

#include "record/base/clock.h"
#include "record/session/session.h"
#include "record/target/memory_read.h"

#define FIRST_NS  4000000u    /* from a process's first sample to its second; then it doubles, */
#define FORKED_NS 62500000u   /* of one that was forked: there may be many, and short ones; */
#define STEP_NS	  1000000000u /* up to this */

/*
 * A walk through a process's pages keeps it from changing its mappings, for 10 to 100 ns a page,
 * and 1 us a mapping.  No process is walked through that would take longer than LONGEST_NS, and all
 * together take one thousandth of the time.  doc/decisions/0039.
 */
#define LONGEST_NS 4000000u
#define SHARE	   1000
#define GUESS_NS   60u /* a page that was not walked through yet */
#define PAGE	   4096u
#define MOST_SAVED 5000000 /* nanoseconds: after a pause not all may be walked through at once */

/* Nanoseconds that a walk through @p, of @rss bytes, is likely to take. */
static uint64_t walk_expected(const struct process *p, uint64_t rss)
{
	const struct process_memory *m = &p->memory;
	const uint64_t grown = rss > m->walk_bytes ? rss - m->walk_bytes : 0;

	return m->walk_ns + grown / PAGE * GUESS_NS;
}

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

static void walk_pages(struct session *s, struct process *p, struct mlk_memory *sample)
{
	const uint64_t rss = sample->value[MLK_MEMORY_RSS];
	uint64_t begin_ns;

	if (s->memory.walk_left_ns < 0 || !(sample->known >> MLK_MEMORY_RSS & 1) ||
	    walk_expected(p, rss) > LONGEST_NS)
		return;
	/* not the time in which others had the processor: that is no work of this process's size */
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	/* That it is refused costs nothing, and is told by the value that is missing. */
	(void)memory_read_pages(&p->target, sample);
	p->memory.walk_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	p->memory.walk_bytes = rss;
	s->memory.walk_left_ns -= (int64_t)p->memory.walk_ns;
}

static void add_sample(struct session *s, const struct mlk_memory *sample)
{
	if (!s->out.err)
		trace_out_fail(&s->out, memory_list_add(&s->memory.list, s->out.writer, sample));
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
	walk_pages(s, p, &sample);
	add_sample(s, &sample);
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

uint64_t session_sample_memory(struct session *s, uint64_t now_ns)
{
	struct session_memory *m = &s->memory;
	uint64_t next_ns = UINT64_MAX;

	if (now_ns < m->due_ns)
		return m->due_ns;
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
	return m->due_ns;
}

void session_sample_all(struct session *s)
{
	for (size_t i = 0; i < s->nr; i++)
		s->all[i]->memory.due_ns = 0;
	s->memory.due_ns = 0;
	session_sample_memory(s, clock_now_ns());
}

void session_sample_ended(struct session *s, const struct process *p)
{
	/* what has ended since the recording has, did so after its last sample */
	const struct mlk_memory sample = {.tgid = (uint32_t)p->target.pid,
					  .time_ns = s->end_ns ? s->end_ns : clock_now_ns(),
					  .error = ESRCH};

	add_sample(s, &sample);
}

void session_flush_memory(struct session *s)
{
	if (!s->out.err)
		trace_out_fail(&s->out, memory_list_flush(&s->memory.list, s->out.writer));
}
