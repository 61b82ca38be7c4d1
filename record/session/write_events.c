/* write_events.c - from the rings' events to the trace's */
#include "record/session/interpreted.h"
#include "record/session/session.h"

#include <errno.h>

#include "bpf/event.h"
#include "record/preload/ring/stack_image.h"
#include "record/session/session_golang.h"

/* Events read before other things are checked again: some milliseconds' worth. */
#define BATCH 20000

/* What is not an allocation has its time in the trace right to this. */
#define TIME_GRAIN_NS 100000u

/* Times of probes are multiples of this in the trace.  What is below it differs at random from one
 * event to the next, so it took a byte of each; a probe takes as long. */
#define TIME_STEP_NS 256u

_Static_assert((int)EVENT_ALLOC == MLK_ALLOC && (int)EVENT_FREE == MLK_FREE &&
		       (int)EVENT_RELEASE == MLK_RELEASE && (int)EVENT_RESTORE == MLK_RESTORE &&
		       (int)EVENT_EXEC == MLK_EXEC && (int)EVENT_UNMAP == MLK_UNMAP &&
		       (int)EVENT_FORK == MLK_FORK && (int)EVENT_EXIT == MLK_EXIT,
	       "the ring's kinds are the trace's");
_Static_assert(EVENT_GIVEN_BACK - EVENT_ACCESSIBLE == MLK_PAGES_GIVEN_BACK - MLK_PAGES_ACCESSIBLE &&
		       EVENT_LAZILY - EVENT_ACCESSIBLE == MLK_PAGES_LAZILY - MLK_PAGES_ACCESSIBLE,
	       "and so is what was done to pages");
_Static_assert((int)FUNC_MALLOC == MLK_FUNC_MALLOC && (int)FUNC_CALLOC == MLK_FUNC_CALLOC &&
		       (int)FUNC_REALLOC == MLK_FUNC_REALLOC &&
		       (int)FUNC_POSIX_MEMALIGN == MLK_FUNC_POSIX_MEMALIGN &&
		       (int)FUNC_ALIGNED_ALLOC == MLK_FUNC_ALIGNED_ALLOC &&
		       (int)FUNC_MEMALIGN == MLK_FUNC_MEMALIGN &&
		       (int)FUNC_VALLOC == MLK_FUNC_VALLOC &&
		       (int)FUNC_PVALLOC == MLK_FUNC_PVALLOC &&
		       (int)FUNC_REALLOCARRAY == MLK_FUNC_REALLOCARRAY &&
		       (int)FUNC_MMAP == MLK_FUNC_MMAP && (int)FUNC_MREMAP == MLK_FUNC_MREMAP &&
		       (int)FUNC_NEW == MLK_FUNC_NEW && (int)FUNC_NEW_ARRAY == MLK_FUNC_NEW_ARRAY,
	       "the ring's functions are the trace's");

static void copy_regs(uint64_t *to, const __u64 *from)
{
	static const uint8_t numbers[EVENT_NR_REGS] = {[EVENT_RBX] = 3,
						       [EVENT_RBP] = DWUNW_X86_64_RBP,
						       [EVENT_RSP] = DWUNW_X86_64_RSP,
						       [EVENT_R12] = 12,
						       [EVENT_R13] = 13,
						       [EVENT_R14] = 14,
						       [EVENT_R15] = 15,
						       [EVENT_RIP] = DWUNW_X86_64_RIP};

	for (size_t i = 0; i < EVENT_NR_REGS; i++)
		to[numbers[i]] = from[i];
}

/* Is all that comes of @p, or of a process that is not known, from after the end?  Each process has
 * its own last event: of one a free may still come that was kept since long before. */
static bool *over(struct session *s, struct process *p)
{
	return p ? &p->over : &s->over;
}

/* Is what comes of @p not to be in the trace? */
static bool is_left_out(struct session *s, struct process *p)
{
	return *over(s, p) || (p && p->refused);
}

/* @time_ns as the trace has it.  The clock of rings in memory has steps of its own, and none with
 * --guard. */
static uint64_t step_time(const struct session *s, uint64_t time_ns)
{
	return s->probes ? time_ns - time_ns % TIME_STEP_NS : time_ns;
}

/* The time of an event but ALLOC that happened at @time_ns: that of the event before it, where that
 * is as good, because it takes no room in the trace. */
static uint64_t near_time(const struct session *s, uint64_t time_ns)
{
	uint64_t since = time_ns - s->time_ns;

	return since + TIME_GRAIN_NS < 2 * TIME_GRAIN_NS ? s->time_ns : step_time(s, time_ns);
}

/* @ev goes into the trace. */
static int put(struct session *s, const struct mlk_event *ev)
{
	int err = tally_note(&s->tally, ev);

	session_note_pages(s, ev);
	return err ? err : mlk_writer_event(s->out.writer, ev);
}

/* A free that was kept for some time. */
static int take_free(struct session *s, struct process *p, const struct kept_free *free)
{
	struct mlk_event ev = {.kind = MLK_FREE,
			       .tgid = event_tgid(free->id),
			       .tid = event_tid(free->id),
			       .addr = free->addr,
			       .time_ns = near_time(s, free->time_ns)};

	if (is_left_out(s, p))
		return 0;
	s->frees++;
	return put(s, &ev);
}

/* The stack of @e, the caller's @sp on: from @view, or NULL, from @e itself. */
static struct go_stack stack_of(const struct event_alloc *e, const struct shared_view *view)
{
	const uint32_t below = e->regs[EVENT_RSP] % EVENT_STACK_ALIGN;
	struct go_stack s = {.sp = e->regs[EVENT_RSP],
			     .flags = e->flags | DWUNW_EVENT_RETURN_ADDRESS};

	if (view) {
		s.bytes = view->bytes;
		s.len = view->len;
	} else if (e->stack_len > below) {
		s.bytes = e->stack + below;
		s.len = e->stack_len - below;
	}
	return s;
}

/* Put the stack of @e, an allocation of @p, into @ev. */
static void put_stack(struct session *s, struct process *p, const struct event_alloc *e,
		      const struct shared_view *view, struct mlk_event *ev)
{
	struct go_stack stack = stack_of(e, view);

	if (e->head.what & FUNC_PART && p && stack.bytes)
		session_join(s, p, e->id, &stack);
	ev->stack = stack.bytes;
	ev->stack_len = stack.len;
	ev->flags |= stack.flags;
	/* Of a stack that was put together the trace has other bytes than the ring. */
	ev->stack_kept_from = view && !(p && p->golang.is_go) ? view->kept_from : 0;
}

/* What a reader lacks of the stack of @ev, an allocation of @p that is next.  A stack that the user
 * wants cut shorter stays so. */
static int put_rest(struct session *s, struct process *p, const struct mlk_event *ev)
{
	struct stack_rest *rest;

	if (s->stack_limit != MLK_MAX_STACK || p->golang.is_go || !ev->tid)
		return 0;
	rest = threads_rest(&p->threads, ev->tid);
	return rest ? stack_rest_before(rest, &s->rests, &p->target, ev, s->out.writer) : -ENOMEM;
}

/* @view: where the stack is if not in @e; NULL: there. */
static int take_alloc(struct session *s, struct process *p, const struct event_alloc *e,
		      const struct shared_view *view)
{
	struct mlk_event ev = {
		.kind = MLK_ALLOC,
		.func = (uint8_t)(e->head.what & ~(FUNC_RESERVED | FUNC_PART)),
		.nr_regs = DWUNW_MAX_ARCH_REGS,
		.flags = e->head.what & FUNC_RESERVED ? MLK_EVENT_RESERVED : 0,
		.tgid = event_tgid(e->id),
		.tid = event_tid(e->id),
		.time_ns = step_time(s, e->time_ns),
		.addr = e->addr,
		.size = e->size,
		.alloc_id = s->allocs + 1,
	};
	struct mlk_code_frame frames[EVENT_PYTHON_FRAMES];
	int err = 0;

	if (e->freed >= EVENT_FREED_MIN)
		err = take_free(s, p,
				&(struct kept_free){e->id, event_freed(e->freed),
						    e->time_ns - event_freed_age(e->freed)});
	if (err)
		return err;
	/* The probes go in any order, those of free maybe first: a block allocated meanwhile would
	 * be a false leak. */
	*over(s, p) |= s->end_ns && e->time_ns >= s->end_ns;
	if (is_left_out(s, p))
		return 0;
	/* The code that made this event may have been mapped after we looked last. */
	if (e->time_ns >= s->maps_known_ns)
		session_read_sideband(s);
	if (s->out.code_changed)
		code_ranges_update(&s->code, &s->out, s->all, s->nr);
	if (p)
		p->exec.seen = true;
	put_stack(s, p, e, view, &ev);
	copy_regs(ev.regs, e->regs);
	s->time_ns = ev.time_ns;
	if (e->head.what == FUNC_OVERRUN)
		return overrun_list_write(&s->overruns, s->out.writer, &ev);
	if (p && p->interpreter.found)
		session_put_frames(s, p, &ev, frames);
	err = p ? put_rest(s, p, &ev) : 0;
	if (err)
		return err;
	s->allocs++;
	s->stacks_cut += (ev.flags & DWUNW_EVENT_STACK_DEGRADED) != 0;
	return put(s, &ev);
}

static bool has_time(uint32_t type)
{
	return type == EVENT_EXEC || type == EVENT_FORK || type == EVENT_EXIT;
}

/* What happened to @p, a process, and is @ev in the trace. */
static int take_life(struct session *s, struct process *p, const struct event_small *e,
		     const struct mlk_event *ev)
{
	if (e->head.type == EVENT_FORK)
		children_announce(s, (pid_t)ev->tgid, (pid_t)e->addr);
	if (!p || e->head.type == EVENT_FORK)
		return 0;
	if (e->head.type == EVENT_EXEC)
		threads_forget_stacks(&p->threads);
	if (!s->backend->probes) {
		/* there are no probes that another program would need */
	} else if (e->head.type == EVENT_EXEC) {
		exec_note(s, p, ev->time_ns, e->head.what);
	} else if (e->head.what) {
		p->leader.ended = p->leader.due = true;
		return 0;
	} else {
		p->exited = true;
		session_end_process(s, p);
	}
	return put(s, ev);
}

static int take_small(struct session *s, struct process *p, const struct event_small *e,
		      size_t size)
{
	struct mlk_event ev = {
		.kind = (uint8_t)e->head.type,
		.flags = e->head.type == EVENT_FREE && e->head.what ? MLK_EVENT_NESTED : 0,
		.tgid = event_tgid(e->id),
		.tid = event_tid(e->id),
		.addr = e->addr,
		.size = event_has_range(e->head.type) ? e->value : 0};

	if (size < sizeof(*e))
		return -EPROTO;
	if (ev.kind >= EVENT_ACCESSIBLE) {
		ev.func = (uint8_t)(ev.kind - EVENT_ACCESSIBLE + MLK_PAGES_ACCESSIBLE);
		ev.kind = MLK_PAGES;
	}
	if (has_time(e->head.type))
		s->time_ns = e->value;
	else
		s->time_ns = near_time(s, e->time_ns);
	ev.time_ns = s->time_ns;
	if (has_time(e->head.type))
		return take_life(s, p, e, &ev);
	if (is_left_out(s, p))
		return 0;
	s->frees += e->head.type == EVENT_FREE || e->head.type == EVENT_RELEASE;
	return put(s, &ev);
}

static int take(struct session *s, void *data, size_t size, const struct shared_view *view)
{
	const struct event_alloc *alloc = data;
	const struct event_small *small = data;
	bool is_alloc = alloc->head.type == EVENT_ALLOC;
	uint64_t id = is_alloc ? alloc->id : small->id;
	struct process *p;
	int err;

	if (s->out.err)
		return s->out.err;
	p = session_find(s, (pid_t)event_tgid(id));
	if (small->head.type == EVENT_FRAMES || small->head.type == EVENT_CODE)
		return session_take_frames(s, p, data, size);
	if (small->head.type == EVENT_PART)
		err = session_keep_part(s, data, size);
	else if (small->head.type == EVENT_OVERRUN)
		err = overrun_list_add(&s->overruns, s->out.writer, data, s->time_ns);
	else if (is_alloc && (size < sizeof(*alloc) || alloc->stack_len > size - sizeof(*alloc)))
		err = -EPROTO;
	else
		err = is_alloc ? take_alloc(s, p, alloc, view) : take_small(s, p, small, size);
	trace_out_fail(&s->out, err);
	if (p)
		trace_out_fail(&s->out, threads_see(&p->threads, event_tid(id)));
	if (s->out.err)
		return s->out.err;
	if (s->yields && mlk_writer_is_behind(s->out.writer))
		return -EAGAIN;
	return ++s->batch >= BATCH ? -EAGAIN : 0;
}

void write_deferred_frees(struct session *s)
{
	struct kept_free free;
	size_t i = 0;

	while (!s->out.err && probes_freed(s->probes, &i, &free))
		trace_out_fail(&s->out,
			       take_free(s, session_find(s, (pid_t)event_tgid(free.id)), &free));
}

void write_life(struct session *s, enum mlk_kind kind, pid_t pid, pid_t parent)
{
	const struct mlk_event ev = {.kind = (uint8_t)kind,
				     .tgid = (uint32_t)pid,
				     .tid = (uint32_t)pid,
				     .time_ns = s->time_ns,
				     .addr = (uint64_t)parent};

	write_own_event(s, &ev);
}

void write_own_event(struct session *s, const struct mlk_event *ev)
{
	if (!s->out.err)
		trace_out_fail(&s->out, put(s, ev));
}

int write_event(void *ctx, void *data, size_t size)
{
	return take(ctx, data, size, NULL);
}

int write_event_at(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view)
{
	const struct event_part *part = data;
	struct session *s = ctx;

	s->time_ns = time_ns;
	if (view)
		return take(s, data, sizeof(struct event_alloc), view);
	if (part->head.type == EVENT_PART)
		return take(s, data, sizeof(*part) + part->len, NULL);
	return take(s, data, SIZE_MAX, NULL);
}
