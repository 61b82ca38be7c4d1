/* stack.h - how far a thread's stack reaches, and its copy */
#ifndef MLEAK_BPF_STACK_H
#define MLEAK_BPF_STACK_H

#include "bpf/ring.h"
#include "bpf/state.h"

struct stack_range {
	__u64 sp, lo, hi;
};

/* What lies above a stack's first frame is not needed for unwinding, and none of our business: of
 * the main thread argv, environ and auxv; of others what fs: points to, glibc's struct pthread. */
static long note_stack(struct task_struct *task, struct vm_area_struct *vma, struct stack_range *r)
{
	unsigned long start_stack = BPF_CORE_READ(task, mm, start_stack);
	unsigned long fs = BPF_CORE_READ(task, thread.fsbase);

	r->lo = vma->vm_start;
	r->hi = vma->vm_end;
	if (start_stack > r->lo && start_stack < r->hi)
		r->hi = start_stack;
	if (fs > r->sp && fs < r->hi)
		r->hi = fs;
	return 0;
}

/* The end of the stack that @sp lies in, which is noted; 0: not known. */
static __noinline __u64 find_stack(struct thread_state *st, __u64 sp)
{
	struct stack_range found = {.sp = sp};

	if (!st || !bpf_core_enum_value_exists(enum bpf_func_id___mleak, BPF_FUNC_find_vma___mleak))
		return 0;
	bpf_find_vma(bpf_get_current_task_btf(), sp, note_stack, &found, 0);
	if (sp < found.lo || sp >= found.hi)
		return 0; /* mmap_lock was taken, or the stack lies above start_stack */
	st->stack_hi = found.hi;
	st->stack_span = found.hi - found.lo;
	note_usual(st);
	return found.hi;
}

/*
 * Take the stack of @e anew, from @from on, by pages: one of them cannot be read, and a read that
 * meets it gives nothing but zeros.  Such a page may well lie in the middle of a stack: a large
 * buffer that was never touched.  What lies beyond it is read all the same, unless the stack's end
 * is not known: then that might be it.  @e has room for @room bytes, a constant.
 */
static __noinline int take_pages(struct event_alloc *e, __u64 from, __u64 room)
{
	if (!e)
		return 0;
	e->flags |= DWUNW_EVENT_STACK_FAULT;
#pragma clang loop unroll(disable)
	for (__u32 at = 0; at < room; at += PAGE_SIZE) {
		const __u32 chunk = room - at < PAGE_SIZE ? room - at : PAGE_SIZE;
		/* Read each time, or the verifier follows what it knows of them through all turns.
		 */
		__u32 len = *(volatile __u32 *)&e->stack_len, want = len - at, part;

		if (at >= len)
			break;
		if (want > chunk)
			want = chunk;
		if (!bpf_probe_read_user(e->stack + at, want, (void *)(from + at)))
			continue;
		part = PAGE_SIZE - ((from + at) & (PAGE_SIZE - 1));
		if (part > want)
			part = want;
		barrier_var(part); /* or the verifier is shown a bound of another register */
		if (part > chunk)
			break;
		if (bpf_probe_read_user(e->stack + at, part, (void *)(from + at)))
			part = 0;
		if (*(volatile __u32 *)&e->flags & DWUNW_EVENT_STACK_UNBOUNDED) {
			e->stack_len = at + part;
			break;
		}
		/* The other page of the two that this chunk lies on; the room ends behind the last.
		 */
		part = PAGE_SIZE - ((from + at) & (PAGE_SIZE - 1));
		want -= part;
		if (at + 2 * PAGE_SIZE <= room && part < PAGE_SIZE && want < PAGE_SIZE)
			bpf_probe_read_user(e->stack + at + part, want, (void *)(from + at + part));
	}
	return 0;
}

#endif
