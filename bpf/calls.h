/* calls.h - which call of an allocator counts: the outermost, and no call that is long over
 *
 * A thread's call is noted at its entry and over at its return.  A call made meanwhile is nested in
 * it when an allocator makes it.  A return can be missed forever (longjmp out of a signal handler,
 * 64 nested return probes), so what was noted must be doubted:
 *
 * - At a higher stack pointer than the one noted, the noted call is over; unless that is on the
 *   stack for signal handlers.
 * - The caller of the new call is on the stack.  When that is not an allocator, the call is the
 *   program's own: of a signal handler, or of a program whose noted call was left.  It counts.
 * - The C library proves nothing, because a handler and a program that left the call use it too.
 *   But both need a signal to come while the call is under way, and the kernel reports that.  (If
 *   the handler just returns, and only then the allocator calls another, both count: two
 *   allocations of one address.  The second takes the first one's place.)
 * - As long as a call is under way its return address is replaced by that of the kernel's
 *   trampoline; or if its return is seen at the instruction (CALL_BY_RET), it is that which was
 *   there at the entry.  Where that has gone, the noted call is over.
 * - An exception leaves an operator new.  It is made by malloc, so after another call within the
 *   operator that is as after a signal; and that it never returned is no loss.
 */
#ifndef MLEAK_BPF_CALLS_H
#define MLEAK_BPF_CALLS_H

#include "bpf/stack.h"
#include "bpf/state.h"

/* Where the kernel's return probes return to in this process; 0: not known. */
static __always_inline __u64 trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!bpf_core_field_exists(struct xol_area, vaddr) ||
	    !bpf_core_field_exists(struct mm_struct, uprobes_state))
		return 0;
	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* The 8 bytes at @addr of the target's memory; 0: they cannot be read. */
static __always_inline __u64 word_at(__u64 addr)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)addr);
	return word;
}

/* Is @ip in the code of a library that allocates? */
static __always_inline int in_library(const struct event_code *code, __u64 ip)
{
	for (int i = 0; i < EVENT_MAX_CODE; i++)
		if (ip - code->libraries[i].start < code->libraries[i].size)
			return 1;
	return 0;
}

/* May @ip be the code of an allocator?  In a program that brings its own, any of it may. */
static __always_inline int in_allocator(const struct event_code *code, __u64 ip)
{
	return in_library(code, ip) || ip - code->program.start < code->program.size;
}

/* Is a call noted as @call, rather than CALL_NONE or CALL_UNKNOWN? */
static __always_inline int is_call(const struct call *call)
{
	return call->sp > CALL_NONE;
}

/* The stack pointer at its entry. */
static __always_inline __u64 call_sp(const struct call *call)
{
	return call->sp & ~7ull;
}

/* The function called, enum event_func: malloc unless @call is marked as special. */
static __always_inline __u32 call_func(const struct call *call)
{
	return call->sp & CALL_SPECIAL ? call->func & CALL_FUNC : FUNC_MALLOC;
}

/* Has a signal or an exception come during @call, so that it may have been left for good? */
static __always_inline int is_interrupted(const struct call *call)
{
	return call->sp & CALL_SPECIAL && call->func & CALL_INTERRUPTED;
}

/* Is its return seen at the instruction? */
static __always_inline int is_by_ret(const struct call *call)
{
	return call->sp & CALL_SPECIAL && call->func & CALL_BY_RET;
}

/* May an exception leave it?  Such an operator has no return probe. */
static __always_inline int may_throw(const struct call *call)
{
	__u32 func = call_func(call);

	return is_by_ret(call) && (func == FUNC_NEW || func == FUNC_NEW_ARRAY);
}

/* Is @call's return address still where it was? The trampoline's may: of a return probe of another
 * recorder's, which the kernel puts on every process that comes by. */
static __always_inline int returns_as_noted(const struct call *call, __u64 trampoline)
{
	__u64 word = word_at(call_sp(call));

	return word == call->ret || (trampoline && word == trampoline);
}

/* Is the call noted as @call still to return? */
static __always_inline int is_pending(const struct call *call, __u64 trampoline)
{
	if (!is_call(call))
		return 0;
	if (is_by_ret(call))
		return returns_as_noted(call, trampoline);
	return !trampoline || word_at(call_sp(call)) == trampoline;
}

/* Is the call at @sp made by a signal handler that interrupts @call, and runs on a stack of its
 * own? */
static __always_inline int from_other_stack(const struct call *call, __u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 lo = BPF_CORE_READ(task, sas_ss_sp), size = BPF_CORE_READ(task, sas_ss_size);
	struct stack_range found = {.sp = sp, .lo = sp};

	if (!is_interrupted(call))
		return 0;
	if (size)
		return (sp - lo < size) != (call_sp(call) - lo < size);
	/* There is none, or with SS_AUTODISARM it is not known while the handler runs. */
	if (bpf_core_enum_value_exists(enum bpf_func_id___mleak, BPF_FUNC_find_vma___mleak))
		bpf_find_vma(task, sp, note_stack, &found, 0);
	return call_sp(call) < found.lo;
}

/* Was the call at @sp made while @call was under way?  The stack may be another, and lie higher. */
static __always_inline int is_later(const struct call *call, __u64 sp)
{
	return sp < call_sp(call) || from_other_stack(call, sp);
}

/* Is the call of @func at @sp, which returns to @caller, reached by a jump from the function
 * @st->now? (A call of the same function is a new one, as when an exception has left the last one;
 * except for operator delete, which none leaves.) */
static __always_inline int is_jumped_to(const struct thread_state *st, __u64 sp, __u32 func,
					__u64 caller)
{
	return is_by_ret(&st->now) && sp == call_sp(&st->now) && caller == st->now.ret &&
	       (func != call_func(&st->now) || func == FUNC_DELETE);
}

/* Is the call of @func whose entry has the stack pointer @sp made inside the call @st->now?  A
 * separate function: it is seldom needed. */
__noinline int is_nested(struct thread_state *st, __u64 sp, __u32 func)
{
	const struct event_code *code;
	__u64 caller, tramp;
	int nested;

	if (!st || !is_call(&st->now) || sp > call_sp(&st->now))
		return 0;
	tramp = trampoline();
	caller = word_at(sp);
	if (tramp && caller == tramp)
		return 1; /* reached by a jump from a function whose return is probed */
	if (is_jumped_to(st, sp, func, caller))
		return 1;
	if (sp == call_sp(&st->now) || is_interrupted(&st->now))
		return 0;
	code = code_of(st->id);
	nested = code && in_allocator(code, caller) && is_pending(&st->now, tramp);
	if (nested && may_throw(&st->now))
		st->now.func |= CALL_INTERRUPTED;
	return nested;
}

/* Count the call @call, whose return was not seen; while the probes are detached, that is
 * expected. */
static __always_inline void count_unreturned(const struct call *call)
{
	if (!ended && !may_throw(call))
		count(&drops.ret);
}

/* The kernel takes a return probe below a new one for one that was left; when the function returns
 * nevertheless, it kills the thread.  Would one at @sp do that to @call? */
static __noinline int would_kill(const struct call *call, __u64 sp)
{
	return call && is_call(call) && !is_by_ret(call) && sp >= call_sp(call) &&
	       from_other_stack(call, sp) && is_pending(call, trampoline());
}

/* Something is noted: is a call of @func, which may have EVENT_BY_RET, at @sp to be noted instead?
 * What it replaces is kept, or counted. */
__noinline int makes_room(struct thread_state *st, __u64 sp, __u32 func)
{
	if (!st || is_nested(st, sp, func & CALL_FUNC))
		return 0;
	if (!(func & EVENT_BY_RET) && (would_kill(&st->now, sp) || would_kill(&st->outer, sp))) {
		count(&drops.ret);
		return 0;
	}
	if (is_later(&st->now, sp) && is_pending(&st->now, trampoline())) {
		if (is_call(&st->outer))
			count_unreturned(&st->outer);
		if (may_throw(&st->now))
			st->now.func |= CALL_INTERRUPTED;
		st->outer = st->now;
		return 1;
	}
	count_unreturned(&st->now);
	if (is_call(&st->outer) && sp >= call_sp(&st->outer)) {
		count_unreturned(&st->outer);
		st->outer.sp = CALL_NONE;
	}
	return 1;
}

/* Note the call of @func, which may have EVENT_BY_RET, that begins at @sp.  NULL: it is nested in
 * another, or its return must not be probed. */
static __always_inline struct call *call_begin(struct thread_state *st, __u64 sp, __u32 func)
{
	if (st->now.sp != CALL_NONE && !makes_room(st, sp, func))
		return 0;
	st->now.sp = sp | CALL_SPECIAL;
	st->now.func = func;
	if (func & EVENT_BY_RET)
		st->now.ret = word_at(sp);
	return &st->now;
}

/* The call of @func returns with the stack pointer @sp: is it st->now?  Then call_over() is next,
 * when all that was noted of it has been used. */
static __always_inline int call_returns(struct thread_state *st, __u64 sp, __u32 func)
{
	/* The return pops the return address, to which the stack pointer pointed at the entry. */
	if (!is_call(&st->now) || call_sp(&st->now) != sp - 8) {
		if (!is_call(&st->outer) || call_sp(&st->outer) != sp - 8)
			return 0;
		count_unreturned(&st->now); /* of the handler, which has been left */
		st->now = st->outer;
		st->outer.sp = CALL_NONE;
	}
	return call_func(&st->now) == func;
}

/* Is @call one that returns at @sp by an instruction with a probe, and has it still its return
 * address? */
static __always_inline int is_at_end(const struct call *call, __u64 sp)
{
	return is_by_ret(call) && call_sp(call) == sp && returns_as_noted(call, trampoline());
}

/* A function whose returns are seen at the instructions returns at the stack pointer @sp: which one
 * is it?  0: no call of one is noted that began there, and returns to there. */
static __always_inline __u32 func_returning(const struct thread_state *st, __u64 sp)
{
	if (is_at_end(&st->now, sp))
		return call_func(&st->now);
	if (is_at_end(&st->outer, sp))
		return call_func(&st->outer);
	return 0;
}

/* The call that was interrupted goes on. */
__noinline int call_goes_on(struct thread_state *st)
{
	if (!st)
		return 0;
	st->now = st->outer;
	st->outer.sp = CALL_NONE;
	return 0;
}

/* The call @st->now has returned: that which a handler interrupted goes on, or there is none. */
static __always_inline void call_over(struct thread_state *st)
{
	if (is_call(&st->outer))
		call_goes_on(st);
	else
		st->now.sp = CALL_NONE;
}

#endif
