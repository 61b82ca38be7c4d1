/* stack.h - how far a thread's stack reaches, and its copy */
#ifndef MLEAK_BPF_STACK_H
#define MLEAK_BPF_STACK_H

#include "bpf/ring.h"
#include "bpf/state.h"

/* The stack [lo, hi) that was found for the stack pointer sp. */
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

#endif
