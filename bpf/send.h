/* send.h - events on their way into the ring */
#ifndef MLEAK_BPF_SEND_H
#define MLEAK_BPF_SEND_H

#include "bpf/stack.h"
#include "bpf/state.h"

/* Waking the recorder costs the target a good part of an event: do it once for each lot. */
static __always_inline __u64 submit_flags(void)
{
	__u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	return waiting - wakeup_bytes < 2 * 65536 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline int send_small(enum event_type type, __u64 id, __u64 addr, __u32 nested)
{
	struct event_small *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e)
		return -1;
	e->type = type;
	e->nested = nested;
	e->tgid = id >> 32;
	e->tid = (__u32)id;
	e->time_ns = bpf_ktime_get_ns();
	e->addr = addr;
	/* An exec is waited for: the new program may need probes elsewhere. */
	bpf_ringbuf_submit(e, type == EVENT_EXEC ? BPF_RB_FORCE_WAKEUP : submit_flags());
	return 0;
}

/* EVENT_UNMAP of [@addr, @addr + @size). */
static __always_inline int send_range(__u64 id, __u64 addr, __u64 size)
{
	struct event_range *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e)
		return -1;
	e->small.type = EVENT_UNMAP;
	e->small.nested = 0;
	e->small.tgid = id >> 32;
	e->small.tid = (__u32)id;
	e->small.time_ns = bpf_ktime_get_ns();
	e->small.addr = addr;
	e->size = size;
	bpf_ringbuf_submit(e, submit_flags());
	return 0;
}

static __always_inline void copy_regs(__u64 *to, const struct pt_regs *ctx)
{
	to[0] = ctx->rax;
	to[1] = ctx->rdx;
	to[2] = ctx->rcx;
	to[3] = ctx->rbx;
	to[4] = ctx->rsi;
	to[5] = ctx->rdi;
	to[6] = ctx->rbp;
	to[7] = ctx->rsp;
	to[8] = ctx->r8;
	to[9] = ctx->r9;
	to[10] = ctx->r10;
	to[11] = ctx->r11;
	to[12] = ctx->r12;
	to[13] = ctx->r13;
	to[14] = ctx->r14;
	to[15] = ctx->r15;
	to[16] = ctx->rip;
}

/* One allocation on its way into the ring. */
struct alloc {
	__u64 id; /* process and thread */
	__u64 addr, size, alloc_id;
	__u32 func, flags;
	__u32 stack_len; /* bytes wanted */
};

/* Send @a with room for @room stack bytes, a constant.  -1: the ring is too full for so much. */
static __always_inline int send_alloc(struct pt_regs *ctx, const struct alloc *a, const __u32 room)
{
	struct event_alloc *e = bpf_ringbuf_reserve(&events, sizeof(*e) + room, 0);
	__u32 flags = a->flags;
	struct copied c;

	if (!e)
		return -1;
	e->type = EVENT_ALLOC;
	e->func = a->func;
	e->addr = a->addr;
	e->size = a->size;
	e->capture.tgid = a->id >> 32;
	e->capture.tid = (__u32)a->id;
	e->capture.alloc_id = a->alloc_id;
	e->capture.timestamp = bpf_ktime_get_ns();
	e->capture.ip = ctx->rip;
	e->capture.sp = ctx->rsp;
	copy_regs(e->capture.regs_snapshot, ctx);
	c = copy_stack(e->capture.stack_bytes, ctx->rsp, a->stack_len, room,
		       !(flags & DWUNW_EVENT_STACK_UNBOUNDED));
	if (c.hole)
		flags |= DWUNW_EVENT_STACK_FAULT;
	e->capture.stack_size = c.len;
	e->capture.flags = flags;
	bpf_ringbuf_submit(e, submit_flags());
	return 0;
}

/* Send with the smallest room that holds the stack: the ring's records have constant sizes. */
static __always_inline int send_alloc_fitting(struct pt_regs *ctx, const struct alloc *a)
{
	if (a->stack_len <= 512)
		return send_alloc(ctx, a, 512);
	if (a->stack_len <= 1024)
		return send_alloc(ctx, a, 1024);
	if (a->stack_len <= 2048)
		return send_alloc(ctx, a, 2048);
	if (a->stack_len <= 4096)
		return send_alloc(ctx, a, 4096);
	if (a->stack_len <= 8192)
		return send_alloc(ctx, a, 8192);
	if (a->stack_len <= 16384)
		return send_alloc(ctx, a, 16384);
	if (a->stack_len <= 32768)
		return send_alloc(ctx, a, 32768);
	return send_alloc(ctx, a, 65536);
}

static __always_inline void record_alloc(struct pt_regs *ctx, struct thread_state *st,
					 const struct call *call, __u64 id, __u64 addr)
{
	__u64 room = stack_room(st, ctx->rsp);
	struct alloc a = {
		.id = id,
		.addr = addr,
		.size = call->size,
		.alloc_id = __sync_fetch_and_add(&last_alloc_id, 1) + 1,
		.func = call->func,
		.flags = DWUNW_EVENT_RETURN_ADDRESS,
		.stack_len = stack_limit,
	};

	if (!room)
		a.flags |= DWUNW_EVENT_STACK_UNBOUNDED;
	else if (room <= stack_limit)
		a.stack_len = (__u32)room;
	else
		a.flags |= DWUNW_EVENT_STACK_LIMIT;
	if (!send_alloc_fitting(ctx, &a))
		return;
	if (a.stack_len > DWUNW_CAPTURE_SLICE) {
		a.stack_len = DWUNW_CAPTURE_SLICE;
		a.flags &= ~DWUNW_EVENT_STACK_LIMIT;
		a.flags |= DWUNW_EVENT_STACK_DEGRADED;
		if (!send_alloc(ctx, &a, DWUNW_CAPTURE_SLICE))
			return;
	}
	count(&drops.alloc);
}

#endif
