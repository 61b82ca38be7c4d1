/* golang.h - the goroutine's stack, from which C was called on the thread's own
 *
 * A thread of a Go program has two stacks: C runs on that of the thread's "g0", called from a
 * goroutine, whose stack is memory of Go's heap.  Where that stack was left is in the runtime's
 * structures, which do not change while C runs.
 */
#ifndef MLEAK_BPF_GOLANG_H
#define MLEAK_BPF_GOLANG_H

#include "bpf/ring.h"
#include "bpf/send_small.h"
#include "bpf/state.h"

/* A goroutine's stack, as struct event_part has it. */
struct go_part {
	__u64 g, left, sp, hi, len;
};

/* The word at @addr of the target; 0: it cannot be read. */
static __always_inline __u64 go_word(__u64 addr)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)addr);
	return word;
}

/* Find the goroutine that this thread has left for C.  0: there is none. */
static __always_inline int find_part(const struct event_go *go, struct go_part *p)
{
	__u64 fs = BPF_CORE_READ(bpf_get_current_task_btf(), thread.fsbase);
	__u64 g0 = go_word(fs + (__u64)(__s64)go->tls);
	__u64 m = g0 ? go_word(g0 + go->m) : 0;

	if (!m || go_word(m) != g0)
		return 0;
	p->g = go_word(m + go->curg);
	if (!p->g || p->g == g0)
		return 0;
	p->left = go_word(g0 + go->sp);
	p->sp = go_word(p->g + go->sp);
	p->hi = go_word(p->g + go->hi);
	p->len = p->hi - p->sp;
	return p->hi > p->sp && !(p->sp & 7);
}

/* Send @p, whose bytes have room in @room, a constant.  0: they could not be had, or there was no
 * room for them. */
static __always_inline __u64 send_part(struct thread_state *st, const struct go_part *p, __u64 room)
{
	struct event_part *e = bpf_ringbuf_reserve(&front, sizeof(*e) + room, 0);
	__u32 front_at = 0;
	__u64 len = p->len;

	if (!e) {
		front_at = front_by_now();
		e = bpf_ringbuf_reserve(&events, sizeof(*e) + room, 0);
	}
	if (!e)
		return 0;
	/* For verifiers of before 6.8: what is used is compared with a constant where it is used.
	 */
	barrier_var(len);
	if (len > room)
		len = room;
	if (bpf_probe_read_user(e->bytes, len, (void *)p->sp)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	e->head.word = event_word(EVENT_PART, 0, front_at);
	e->id = st->id;
	e->g = p->g;
	e->left = p->left;
	e->sp = p->sp;
	e->hi = p->hi;
	e->len = len;
	bpf_ringbuf_submit(e, spend(st, sizeof(*e) + room));
	return FUNC_PART;
}

/* Send the stack of the goroutine that this thread has left for C.  Returns what the allocation's
 * function is marked with; 0: nothing was sent.  (Where the rings are rather full, there is no use
 * in it: of the thread's own stack only a slice is sent.) */
__noinline __u64 record_part(struct thread_state *st)
{
	const struct event_code *code = st ? code_of(st->id) : 0;
	struct go_part p = {};

	if (!st || !code || !code->go.on || code->stale || st->stack_most < stack_limit ||
	    !find_part(&code->go, &p))
		return 0;
	if (p.len <= 960)
		return send_part(st, &p, 960);
	if (p.len <= 4032)
		return send_part(st, &p, 4032);
	return p.len <= 16320 ? send_part(st, &p, 16320) : send_part(st, &p, 65536);
}

#endif
