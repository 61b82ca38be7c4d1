/* merge_frames.c - see merge_frames.h */
#include "report/decode/merge_frames.h"

#include <errno.h>

#include "report/stats/stacks.h"

/* A stack that is being made of two. */
struct merge {
	const struct mlk_event *event;
	uint32_t next; /* of its frames */
	struct dwunw_frame *to;
	size_t nr, last; /* last: behind the last one that was interpreted, 0: none was */
};

void merge_frames_begin(struct merged_stacks *merged)
{
	merged->round++;
}

/* Does the code that interprets lie at @frame? */
static bool interprets(const struct mlk_interpreter *of, const struct dwunw_frame *frame)
{
	uint64_t pc = frame->pc - !!(frame->flags & DWUNW_FRAME_FLAG_RETURN);

	for (uint32_t i = 0; i < of->nr_ranges; i++)
		if (pc >= of->ranges[i].start && pc < of->ranges[i].end)
			return true;
	return false;
}

/* Append what one call of the interpreter has.  False: there is nothing left, or it has none. */
static bool add_call(struct merge *m)
{
	bool more = m->next < m->event->nr_frames;

	if (more && m->event->frames[m->next].code == 0 &&
	    m->event->frames[m->next].at == MLK_CODE_FRAME_ENTRY) {
		m->next++;
		m->last = m->nr + 1; /* behind the interpreter's own frame, which stays */
		return false;
	}
	while (m->next < m->event->nr_frames && m->nr < 2 * STACK_MAX_FRAMES) {
		const struct mlk_code_frame *frame = &m->event->frames[m->next++];

		m->to[m->nr++] = interpreted_frame(frame);
		if (frame->at & MLK_CODE_FRAME_ENTRY)
			break;
	}
	if (more)
		m->last = m->nr;
	return more;
}

/* Interpreted frames are left over: their interpreter's frames were not found.  They go behind the
 * last that was, or if the callers are not known, to the end. */
static void add_left(struct merge *m, bool complete)
{
	size_t behind = m->nr - m->last, at = m->last;
	struct dwunw_frame swap[STACK_MAX_FRAMES];

	if (m->next == m->event->nr_frames || (complete && !at))
		return;
	if (!complete)
		behind = 0;
	for (size_t i = 0; i < behind; i++)
		swap[i] = m->to[at + i];
	m->nr -= behind;
	while (m->next < m->event->nr_frames && m->nr < 2 * STACK_MAX_FRAMES)
		add_call(m);
	for (size_t i = 0; i < behind && m->nr < 2 * STACK_MAX_FRAMES; i++)
		m->to[m->nr++] = swap[i];
}

/* Methods of Ruby may be machine code that it generated: such frames behind each other are one call
 * of the interpreter, with its own frame behind them if that called it.  Go to the last of them. */
static size_t last_generated(const struct mlk_interpreter *of, const struct dwunw_frame *native,
			     size_t nr, size_t i)
{
	while (i + 1 < nr && native[i + 1].flags & DWUNW_FRAME_FLAG_GENERATED)
		i++;
	return i + 1 < nr && interprets(of, &native[i + 1]) ? i + 1 : i;
}

static bool is_generated(const struct mlk_interpreter *of, const struct dwunw_frame *frame)
{
	return of->language == MLK_LANGUAGE_RUBY && frame->flags & DWUNW_FRAME_FLAG_GENERATED;
}

static int merge_stack(struct dwunw *dw, const struct mlk_interpreter *of,
		       const struct mlk_event *event, uint32_t *id)
{
	struct dwunw_frame native[STACK_MAX_FRAMES], to[2 * STACK_MAX_FRAMES];
	size_t nr = dwunw_stack_frames(dw, *id, native, STACK_MAX_FRAMES);
	enum dwunw_status status = dwunw_stack_status(dw, *id);
	struct merge m = {.event = event, .to = to};

	for (size_t i = 0; i < nr; i++) {
		const bool generated = is_generated(of, &native[i]);

		if ((!generated && !interprets(of, &native[i])) || !add_call(&m))
			to[m.nr++] = native[i];
		else if (generated)
			i = last_generated(of, native, nr, i);
	}
	add_left(&m, status == DWUNW_STATUS_ENDED || status == DWUNW_STATUS_STALE);
	return dwunw_stack_intern(dw, to, m.nr < STACK_MAX_FRAMES ? m.nr : STACK_MAX_FRAMES, status,
				  id);
}

int merge_frames(struct merged_stacks *merged, struct dwunw *dw, const struct interpreted *in,
		 const struct mlk_event *event, uint32_t *id)
{
	uint32_t hash = (event->frames_number * 0x9e3779b9u ^ *id) * 0x85ebca6bu;
	struct merged_stack *kept = &merged->kept[hash >> 20 & (MERGED_KEPT - 1)];
	const struct mlk_interpreter *of;
	uint32_t native = *id;
	int err;

	if (kept->round == merged->round && kept->frames == event->frames_number &&
	    kept->native == native) {
		*id = kept->id;
		return 0;
	}
	of = interpreted_find(in, event->tgid, event->time_ns);
	if (!of)
		return 0;
	err = merge_stack(dw, of, event, id);
	if (!err)
		*kept = (struct merged_stack){merged->round, event->frames_number, native, *id};
	return err;
}
