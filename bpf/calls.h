/* calls.h - which call of an allocator counts: the outermost, and no call that is long over
 *
 * A thread's call is noted at its entry and over at its return.  A call made meanwhile is nested in
 * it when an allocator makes it.  A return can be missed for ever (longjmp out of a signal handler,
 * 64 nested return probes), so what was noted must be doubted:
 *
 * - At a higher stack pointer than the one noted, the noted call is over.
 * - Who makes the new call stands on the stack.  When that is not an allocator, the call is the
 *   program's own: of a signal handler, or of a program whose noted call was left.  It counts.
 * - The C library is no witness, for a handler and a program that left the call use it too.  But
 *   both need a signal to come while the call is under way, and of that the kernel tells.  (If the
 *   handler just returns, and only then the allocator calls another, both count: two allocations
 *   of one address.  The second takes the first one's place.)
 * - As long as a call is under way its return address is replaced by that of the kernel's
 *   trampoline.  Where that has gone, the noted call is over.
 */
#ifndef MLEAK_BPF_CALLS_H
#define MLEAK_BPF_CALLS_H

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

static __always_inline int is_call(const struct call *call)
{
	return call->sp > CALL_NONE;
}

/* The stack pointer at its entry. */
static __always_inline __u64 call_sp(const struct call *call)
{
	return call->sp & ~7ull;
}

static __always_inline __u32 call_func(const struct call *call)
{
	return call->sp & CALL_SPECIAL ? call->func & CALL_FUNC : FUNC_MALLOC;
}

static __always_inline int is_interrupted(const struct call *call)
{
	return call->sp & CALL_SPECIAL && call->func & CALL_INTERRUPTED;
}

/* Is the call noted as @call still to return? */
static __always_inline int is_pending(const struct call *call, __u64 trampoline)
{
	return is_call(call) && (!trampoline || word_at(call_sp(call)) == trampoline);
}

/* Is the call whose entry has the stack pointer @sp made inside the call @st->now?  A separate
 * function: it is seldom needed. */
static __noinline int is_nested(struct thread_state *st, __u64 sp)
{
	const struct event_code *code;
	__u64 caller, tramp;

	if (!st || !is_call(&st->now) || sp > call_sp(&st->now))
		return 0;
	tramp = trampoline();
	caller = word_at(sp);
	if (tramp && caller == tramp)
		return 1; /* reached by a jump from a function whose return is probed */
	if (sp == call_sp(&st->now) || is_interrupted(&st->now))
		return 0;
	code = code_of(st->id);
	return code && in_allocator(code, caller) && is_pending(&st->now, tramp);
}

/* Count a call whose return was not seen; while the probes are taken out, that is none to wonder
 * at. */
static __always_inline void count_unreturned(void)
{
	if (!ended)
		count(&drops.ret);
}

/* Something is noted: is a call at @sp to be noted instead?  What it replaces is kept, or counted.
 */
static __noinline int makes_room(struct thread_state *st, __u64 sp)
{
	if (!st || is_nested(st, sp))
		return 0;
	if (sp < call_sp(&st->now) && is_pending(&st->now, trampoline())) {
		if (is_call(&st->outer))
			count_unreturned();
		st->outer = st->now;
		return 1;
	}
	count_unreturned();
	if (is_call(&st->outer) && sp >= call_sp(&st->outer)) {
		count_unreturned();
		st->outer.sp = CALL_NONE;
	}
	return 1;
}

/* Note the call of @func that begins at @sp.  NULL: it is nested in another. */
static __always_inline struct call *call_begin(struct thread_state *st, __u64 sp, __u32 func)
{
	if (st->now.sp != CALL_NONE && !makes_room(st, sp))
		return 0;
	st->now.sp = sp | CALL_SPECIAL;
	st->now.func = func;
	return &st->now;
}

/* The call of @func returns with the stack pointer @sp: is it st->now?  Then call_over() is next,
 * when all that was noted of it has been used. */
static __always_inline int call_returns(struct thread_state *st, __u64 sp, __u32 func)
{
	/* The return pops the return address, on which the stack pointer stood at the entry. */
	if (!is_call(&st->now) || call_sp(&st->now) != sp - 8) {
		if (!is_call(&st->outer) || call_sp(&st->outer) != sp - 8)
			return 0;
		count_unreturned(); /* of the handler, which has been left */
		st->now = st->outer;
		st->outer.sp = CALL_NONE;
	}
	return call_func(&st->now) == func;
}

/* The call that was interrupted goes on. */
static __noinline int call_goes_on(struct thread_state *st)
{
	if (!st)
		return 0;
	st->now = st->outer;
	st->outer.sp = CALL_NONE;
	return 0;
}

static __always_inline void call_over(struct thread_state *st)
{
	if (is_call(&st->outer))
		call_goes_on(st);
	else
		st->now.sp = CALL_NONE;
}

#endif
