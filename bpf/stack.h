/* stack.h - how far a thread's stack reaches, and its copy */
#ifndef MLEAK_BPF_STACK_H
#define MLEAK_BPF_STACK_H

#include "bpf/state.h"

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

#endif
