/* mleak.bpf.c - the probes: what an allocation and a free leave in the ring buffer
 *
 * An allocation is noted at the entry of the outermost allocator and sent at its return, with the
 * registers and the stack of its caller.  At that moment no return probe of ours is pending, so no
 * return address in the copied stack has been replaced.  A free is sent at its entry.  With one
 * globally ordered ring, an address is therefore never given out again before its free was seen.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/event.h"
#include "bpf/kernel.h"

#define PAGE_SIZE 4096u

/* Set by the recorder before the programs are loaded. */
const volatile __u32 target_tgid; /* as its own pid namespace numbers it, see pidns_ino */
const volatile __u64 pidns_dev;	  /* the recorder's pid namespace, to give out its numbers; */
const volatile __u64 pidns_ino;	  /* 0: the initial one */
const volatile __u32 stack_limit = 65536;
const volatile __u64 wakeup_bytes = 1 << 20; /* wake the recorder when so much is waiting */

struct event_drops drops;
__u64 last_alloc_id;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

/* The allocator's call under way in a thread, and what was learned of its stack. */
struct thread_state {
	__u64 call_sp; /* stack pointer at the entry of the outermost allocator; 0: none under way
			*/
	__u64 size;    /* bytes asked for */
	__u64 arg;     /* realloc: the old block; posix_memalign: where the new one is written */
	__u64 func;    /* enum event_func */
	__u64 stack_lo, stack_hi; /* the stack's mapping, when last looked up */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

/* The thread's process in the upper half, itself in the lower; 0 for a process not asked for.  The
 * links filter too, but a child of vfork shares the target's memory and so its probes. */
static __always_inline __u64 target_thread(void)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (pidns_ino) {
		struct bpf_pidns_info ns = {};

		if (bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &ns, sizeof(ns)))
			return 0;
		id = (__u64)ns.tgid << 32 | ns.pid;
	}
	return id >> 32 == target_tgid ? id : 0;
}

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
	bpf_ringbuf_submit(e, submit_flags());
	return 0;
}

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

/* The state of this thread; NULL when it has none and @flags do not ask for a new one. */
static __always_inline struct thread_state *state_of_thread(__u64 flags)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, flags);
}

static long note_stack(struct task_struct *task, struct vm_area_struct *vma,
		       struct thread_state *st)
{
	unsigned long start_stack = BPF_CORE_READ(task, mm, start_stack);

	st->stack_lo = vma->vm_start;
	st->stack_hi = vma->vm_end;
	/* Above the main thread's first frame stand only argv, environ and auxv: not needed for
	 * unwinding, and none of our business. */
	if (start_stack > st->stack_lo && start_stack < st->stack_hi)
		st->stack_hi = start_stack;
	return 0;
}

/* Bytes from @sp to the end of its stack; 0: not known. */
static __always_inline __u64 stack_room(struct thread_state *st, __u64 sp)
{
	struct thread_state found = {};

	if (sp >= st->stack_lo && sp < st->stack_hi)
		return st->stack_hi - sp;
	if (!bpf_core_enum_value_exists(enum bpf_func_id___mleak, BPF_FUNC_find_vma___mleak))
		return 0;
	bpf_find_vma(bpf_get_current_task_btf(), sp, note_stack, &found, 0);
	if (sp < found.stack_lo || sp >= found.stack_hi)
		return 0; /* mmap_lock was taken, or the stack lies above start_stack */
	st->stack_lo = found.stack_lo;
	st->stack_hi = found.stack_hi;
	return found.stack_hi - sp;
}

/* What a copy of a stack came to. */
struct copied {
	__u32 len;  /* bytes from the stack pointer on */
	__u32 hole; /* a page among them could not be read, and is zero */
};

/*
 * Copy @len bytes from @sp to @to, which has room for @room, a constant.  It is done by pages, for
 * a read that meets one which is not in memory gives nothing but zeros.  Such a page may well lie
 * in the middle of a stack: a large buffer that was never touched.  What lies beyond it is read all
 * the same, unless @bounded is 0: then it might be the end of the stack.
 */
static __always_inline struct copied copy_stack(__u8 *to, __u64 sp, __u32 len, const __u32 room,
						int bounded)
{
	struct copied c = {};

	if (len > room)
		len = room;
#pragma clang loop unroll(disable)
	for (__u32 at = 0; at < room; at += PAGE_SIZE) {
		const __u32 chunk = room - at < PAGE_SIZE ? room - at : PAGE_SIZE;
		__u32 want = len - at, part;

		if (at >= len)
			break;
		if (want > chunk)
			want = chunk;
		c.len = at + want;
		if (!bpf_probe_read_user(to + at, want, (void *)(sp + at)))
			continue;
		c.hole = 1;
		part = PAGE_SIZE - ((sp + at) & (PAGE_SIZE - 1));
		if (part > want)
			part = want;
		barrier_var(part); /* or the verifier is shown a bound of another register */
		if (part > chunk)
			break;
		if (bpf_probe_read_user(to + at, part, (void *)(sp + at)))
			part = 0;
		if (!bounded) {
			c.len = at + part;
			break;
		}
		/* The other page of the two that this chunk lies on; the room ends behind the last.
		 */
		part = PAGE_SIZE - ((sp + at) & (PAGE_SIZE - 1));
		want -= part;
		if (at + 2 * PAGE_SIZE <= room && part < PAGE_SIZE && want < PAGE_SIZE)
			bpf_probe_read_user(to + at + part, want, (void *)(sp + at + part));
	}
	return c;
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

static __always_inline void record_alloc(struct pt_regs *ctx, struct thread_state *st, __u64 id,
					 __u64 addr)
{
	__u64 room = stack_room(st, ctx->rsp);
	struct alloc a = {
		.id = id,
		.addr = addr,
		.size = st->size,
		.alloc_id = __sync_fetch_and_add(&last_alloc_id, 1) + 1,
		.func = (__u32)st->func,
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

/* Is @sp inside the call that @st notes?  A call noted at or below @sp is over: its return was
 * missed (longjmp, 64 nested return probes), or it ended in a jump to this one. */
static __always_inline int inside_call(const struct thread_state *st, __u64 sp)
{
	return st->call_sp && sp < st->call_sp;
}

SEC("uprobe")
int alloc_entry(struct pt_regs *ctx)
{
	__u64 id = target_thread(), func = bpf_get_attach_cookie(ctx), sp = ctx->rsp;
	struct thread_state *st;

	if (!id)
		return 0;
	st = state_of_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st) {
		count(&drops.state);
		return 0;
	}
	if (inside_call(st, sp))
		return 0; /* the outermost counts */
	if (st->call_sp && (sp > st->call_sp || func == st->func))
		count(&drops.ret);
	st->call_sp = sp;
	st->func = func;
	st->arg = ctx->rdi;
	st->size = ctx->rdi;
	if (func == FUNC_CALLOC)
		st->size = ctx->rdi * ctx->rsi;
	else if (func == FUNC_REALLOC || func == FUNC_ALIGNED_ALLOC || func == FUNC_MEMALIGN)
		st->size = ctx->rsi;
	else if (func == FUNC_POSIX_MEMALIGN)
		st->size = ctx->rdx;
	if (func == FUNC_REALLOC && st->arg && send_small(EVENT_RELEASE, id, st->arg, 0))
		count(&drops.release);
	return 0;
}

SEC("uretprobe")
int alloc_return(struct pt_regs *ctx)
{
	__u64 id = target_thread(), func = bpf_get_attach_cookie(ctx), addr = ctx->rax;
	struct thread_state *st;

	if (!id)
		return 0;
	st = state_of_thread(0);
	/* The return pops the return address, on which the stack pointer stood at the entry. */
	if (!st || st->call_sp != ctx->rsp - 8 || st->func != func)
		return 0;
	st->call_sp = 0;
	if (func == FUNC_POSIX_MEMALIGN) {
		if ((int)ctx->rax != 0)
			return 0;
		if (bpf_probe_read_user(&addr, sizeof(addr), (void *)st->arg)) {
			count(&drops.pointer);
			return 0;
		}
	}
	if (addr)
		record_alloc(ctx, st, id, addr);
	else if (func == FUNC_REALLOC && st->arg && st->size &&
		 send_small(EVENT_RESTORE, id, st->arg, 0))
		count(&drops.restore);
	return 0;
}

SEC("uprobe")
int free_entry(struct pt_regs *ctx)
{
	__u64 id = target_thread(), addr = ctx->rdi;
	struct thread_state *st;
	__u32 nested = 0;

	if (!id || !addr)
		return 0;
	st = state_of_thread(0);
	if (st)
		nested = inside_call(st, ctx->rsp);
	if (send_small(EVENT_FREE, id, addr, nested))
		count(&drops.free);
	return 0;
}

/* Arguments: the task, its thread id before (another when it was not the main thread), the program.
 */
SEC("raw_tp/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 id = target_thread(), self = bpf_get_current_pid_tgid();
	struct thread_state *st;

	if (!id)
		return 0;
	st = state_of_thread(0);
	if (st)
		st->call_sp = st->stack_lo = st->stack_hi = 0;
	if (send_small(EVENT_EXEC, id, 0, (__u32)ctx->args[1] != (__u32)self))
		count(&drops.exec);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
