/* mappings.h - mmap, mremap, mprotect and madvise: their entries, and what they have done */
#ifndef MLEAK_BPF_MAPPINGS_H
#define MLEAK_BPF_MAPPINGS_H

#include "bpf/calls.h"
#include "bpf/send.h"
#include "bpf/state.h"

#define MAP_FIXED	 0x10
#define MAP_ANONYMOUS	 0x20
#define MAP_STACK	 0x20000
#define MREMAP_FIXED	 2
#define MREMAP_DONTUNMAP 4
#define MAX_ERRNO	 4095
#define VM_ACCESS	 7 /* read, write, execute */
#define VM_SHARED	 8

/* Is a file mapped at the address looked up? */
static long note_file(struct task_struct *task, struct vm_area_struct *vma, int *is_file)
{
	(void)task;
	*is_file = vma->vm_file != 0;
	return 0;
}

/* The same of @addr, for what is to be moved. */
static __always_inline int maps_file(__u64 addr)
{
	int is_file = 0;

	if (bpf_core_enum_value_exists(enum bpf_func_id___mleak, BPF_FUNC_find_vma___mleak))
		bpf_find_vma(bpf_get_current_task_btf(), addr, note_file, &is_file, 0);
	return is_file;
}

/* The flags of what is mapped at the address looked up. */
static long note_flags(struct task_struct *task, struct vm_area_struct *vma, unsigned long *flags)
{
	(void)task;
	*flags = vma->vm_flags;
	return 0;
}

/* The kernel's flags of what is mapped at @addr, or @unknown. */
static __noinline unsigned long flags_at(__u64 addr, unsigned long unknown)
{
	unsigned long flags = unknown;

	if (bpf_core_field_exists(struct vm_area_struct, vm_flags) &&
	    bpf_core_enum_value_exists(enum bpf_func_id___mleak, BPF_FUNC_find_vma___mleak))
		bpf_find_vma(bpf_get_current_task_btf(), addr, note_flags, &flags, 0);
	return flags;
}

/* What a function's entry leads to: is its return to be seen? */
enum { RETURN, NO_RETURN };

/* mmap(addr, length, prot, flags, fd, offset), mremap(old, old_size, new_size, flags, new).  They
 * do not count when a library makes them that allocates, or the C library: then it is an arena or a
 * thread's stack. */
static __noinline int map_entry(struct pt_regs *ctx, struct thread_state *st, __u32 cookie)
{
	__u32 func = cookie & CALL_FUNC;
	const struct event_code *code = st ? code_of(st->id) : 0;
	struct call *call;
	int unmaps;

	if (!st || !code || code->stale || in_library(code, word_at(ctx->rsp)) ||
	    (func == FUNC_MREMAP && maps_file(ctx->rdi)))
		return NO_RETURN;
	call = call_begin(st, ctx->rsp, cookie);
	if (!call)
		return NO_RETURN;
	send_freed(st, FREED_NONE);
	call->flags = (__u32)ctx->rcx;
	call->arg = ctx->rdx;
	call->size = ctx->rsi;
	if (func == FUNC_MMAP)
		return 0;
	call->arg = ctx->rdi;
	call->size = ctx->rdx;
	unmaps = ctx->rsi && !(call->flags & MREMAP_DONTUNMAP);
	if (unmaps)
		record_unmap(st, ctx->rdi, ctx->rsi);
	filter_remap(st, unmaps);
	return 0;
}

/* mprotect(addr, length, prot), madvise(addr, length, advice): the same holds for them. */
static __noinline int pages_entry(struct pt_regs *ctx, struct thread_state *st, __u32 cookie)
{
	__u32 func = cookie & CALL_FUNC, how = (__u32)ctx->rdx;
	const struct event_code *code = st ? code_of(st->id) : 0;
	struct call *call;

	if (!st || !code || code->stale ||
	    !(func == FUNC_MADVISE ? event_of_advice(how) : event_of_prot(how)) ||
	    in_library(code, word_at(ctx->rsp)))
		return NO_RETURN;
	call = call_begin(st, ctx->rsp, cookie);
	if (!call)
		return NO_RETURN;
	call->flags = how;
	call->arg = ctx->rdi;
	call->size = ctx->rsi;
	return RETURN;
}

/* What @st->now, which returns @result, has mapped; 0: nothing, and what it had released lives. */
static __noinline __u64 mapped(struct thread_state *st, __u64 result)
{
	const struct event_code *code = st ? code_of(st->id) : 0;
	__u32 func, flags;

	if (!st || !code || result >= -(__u64)MAX_ERRNO)
		return 0;
	func = call_func(&st->now);
	flags = st->now.flags;
	if (flags & (func == FUNC_MREMAP ? MREMAP_FIXED : MAP_FIXED))
		record_unmap(st, result, st->now.size);
	/* The pages of a file are the file's. */
	if (func == FUNC_MMAP &&
	    (!(flags & MAP_ANONYMOUS) || (code->is_static && flags & MAP_STACK)))
		return 0;
	return result;
}

/* mprotect or madvise has done what @st->now asks for.  Shared memory stays, though it is taken
 * from this process, unless it is removed.  Returns 0. */
static __noinline int pages_done(struct thread_state *st)
{
	int advised = st && call_func(&st->now) == FUNC_MADVISE;
	struct event_small *e;

	if (!st || !st->now.size ||
	    (advised && st->now.flags != EVENT_MADV_REMOVE && flags_at(st->now.arg, 0) & VM_SHARED))
		return 0;
	e = reserve_small(advised ? event_of_advice(st->now.flags) : EVENT_ACCESSIBLE, 0);
	if (!e) {
		count(&drops.unmap);
		return 0;
	}
	e->id = st->id;
	e->addr = st->now.arg;
	e->value = st->now.size;
	bpf_ringbuf_submit(e, spend(st, sizeof(*e)));
	return 0;
}

/* @func, of @st->now, as the event of what it has mapped at @addr names it.  mremap keeps what the
 * mapping was. */
static __noinline __u32 func_mapped(struct thread_state *st, __u32 func, __u64 addr)
{
	int reserved = 0;

	if (st && func == FUNC_MMAP)
		reserved = !(st->now.arg & EVENT_PROT_ANY);
	else if (st && func == FUNC_MREMAP)
		reserved = !(flags_at(addr, VM_ACCESS) & VM_ACCESS);
	return reserved ? func | FUNC_RESERVED : func;
}

#endif
