/* mleak.bpf.c - the probes: what an allocation and a free leave in the rings
 *
 * An allocation is noted at the entry of the outermost allocator and sent at its return, with the
 * registers and the stack of its caller.  At that moment no return probe of ours is pending, so no
 * return address in the copied stack has been replaced.  A free is sent at its entry.  The rings
 * are one order, so an address is never allocated again before its free was seen.
 */
#include "bpf/calls.h"
#include "bpf/life.h"
#include "bpf/mappings.h"
#include "bpf/send.h"
#include "bpf/state.h"

/* Not 0 by overflow: with a size of 0, a realloc that returns NULL has freed its block. */
static __always_inline __u64 array_size(__u64 nr, __u64 size)
{
	return nr * size || !nr || !size ? nr * size : ~0ull;
}

/* Operator delete of an allocator: it frees by itself, or calls free, or another operator. */
static __noinline int delete_entry(struct pt_regs *ctx, struct thread_state *st, __u32 cookie)
{
	__u64 addr = ctx->rdi;
	struct call *call;

	if (!st || !addr)
		return NO_RETURN;
	call = call_begin(st, ctx->rsp, cookie);
	if (call)
		call->arg = addr;
	else if (call_func(&st->now) == FUNC_DELETE && st->now.arg == addr)
		return NO_RETURN;
	if (filter_free(st, addr))
		record_free(st, addr, !call);
	return call ? RETURN : NO_RETURN;
}

/* Bytes that a call of @func asks for. */
static __always_inline __u64 bytes_asked(const struct pt_regs *ctx, __u32 func)
{
	switch (func) {
	case FUNC_CALLOC:
		return ctx->rdi * ctx->rsi;
	case FUNC_REALLOC:
	case FUNC_ALIGNED_ALLOC:
	case FUNC_MEMALIGN:
		return ctx->rsi;
	case FUNC_POSIX_MEMALIGN:
		return ctx->rdx;
	case FUNC_REALLOCARRAY:
		return array_size(ctx->rsi, ctx->rdx);
	default:
		return ctx->rdi;
	}
}

/* Any function that returns something, and operator delete. */
static __noinline int any_entry(struct pt_regs *ctx, __u32 cookie)
{
	struct thread_state *st = know_thread(ctx);
	__u32 func = cookie & CALL_FUNC;
	struct call *call;

	if (!st)
		return NO_RETURN;
	if (func == FUNC_DELETE)
		return delete_entry(ctx, st, cookie);
	if (func == FUNC_MMAP || func == FUNC_MREMAP)
		return map_entry(ctx, st, cookie);
	if (func == FUNC_MPROTECT || func == FUNC_MADVISE)
		return pages_entry(ctx, st, cookie);
	call = call_begin(st, ctx->rsp, cookie);
	if (!call)
		return NO_RETURN; /* the outermost counts */
	call->arg = ctx->rdi;
	call->size = bytes_asked(ctx, func);
	/* What is recorded between a release and its outcome belongs there. */
	send_freed(st, FREED_NONE);
	if ((func == FUNC_REALLOC || func == FUNC_REALLOCARRAY) && call->arg &&
	    filter_release(st, call->arg) && send_small(st, EVENT_RELEASE, call->arg, 0))
		count(&drops.release);
	return RETURN;
}

/* What @st->now returns when it returns @result; 0: nothing. */
static __noinline __u64 block_of(struct thread_state *st, __u64 result)
{
	__u64 addr = 0;

	switch (st ? call_func(&st->now) : FUNC_DELETE) {
	case FUNC_DELETE:
		return 0;
	case FUNC_MMAP:
	case FUNC_MREMAP:
		return mapped(st, result);
	case FUNC_MPROTECT:
	case FUNC_MADVISE:
		return (int)result ? 0 : pages_done(st);
	case FUNC_POSIX_MEMALIGN:
		if (!(int)result && bpf_probe_read_user(&addr, sizeof(addr), (void *)st->now.arg))
			count(&drops.pointer);
		return addr;
	default:
		return result;
	}
}

/* A call that moves a block has failed: the block lives. */
static __always_inline void restore(struct thread_state *st)
{
	__u32 func = call_func(&st->now);

	if ((func == FUNC_REALLOC || func == FUNC_REALLOCARRAY || func == FUNC_MREMAP) &&
	    st->now.size && st->now.arg && filter_restore(st, func) &&
	    send_small(st, EVENT_RESTORE, st->now.arg, 0))
		count(&drops.restore);
}

/* The call of @func that returns now has allocated a block; 0: it has not, and everything is
 * done. */
static __noinline __u64 any_return(struct pt_regs *ctx, struct thread_state *st, __u32 func)
{
	__u64 addr;

	if (!st || !call_returns(st, ctx->rsp, func))
		return 0;
	addr = block_of(st, ctx->rax);
	if (!addr) {
		restore(st);
		call_over(st);
	}
	return addr;
}

/* The registers as they are when the instruction at @ctx has returned, except for rip. */
static __always_inline void copy_returned(struct pt_regs *to, const struct pt_regs *ctx)
{
	to->rax = ctx->rax;
	/* Not one or the other: the verifier wants to know what of @ctx is read. */
	if (bpf_get_attach_cookie((void *)ctx) == EVENT_RET_MEMSET)
		to->rax = *(const volatile unsigned long *)&ctx->rdi;
	to->rbx = ctx->rbx;
	to->rbp = ctx->rbp;
	to->r12 = ctx->r12;
	to->r13 = ctx->r13;
	to->r14 = ctx->r14;
	to->r15 = ctx->r15;
	to->rsp = ctx->rsp + 8;
}

/* Of all functions that return something but malloc, and of operator delete. */
SEC("uprobe")
int alloc_entry(struct pt_regs *ctx)
{
	any_entry(ctx, (__u32)bpf_get_attach_cookie(ctx));
	return 0;
}

static __noinline int at_return(struct pt_regs *ctx, __u32 func)
{
	struct thread_state *st = state_of_thread(ctx);
	unsigned long addr = any_return(ctx, st, func);

	if (!st || !addr)
		return 0;
	if (func == FUNC_MMAP || func == FUNC_MREMAP)
		func = func_mapped(st, func, addr);
	if (filter_alloc(st, func, addr, ctx->rip))
		record_alloc(ctx, st, func, &addr);
	call_over(st);
	return 0;
}

SEC("uretprobe")
int alloc_return(struct pt_regs *ctx)
{
	return at_return(ctx, (__u32)bpf_get_attach_cookie(ctx));
}

/* A program for the session kind of links (6.13) runs at a function's entry and at its return:
 * which is it?  (A kfunc tells, too; but where it is missing libbpf looks for it in the BTF of
 * modules, which takes CAP_SYS_ADMIN.) */
static __always_inline int is_at_entry(struct pt_regs *ctx)
{
	return bpf_get_func_ip(ctx) == ctx->rip;
}

/* Both in one.  That way the return is probed only where it is to be seen: not where that would
 * kill the thread, either. */
SEC("uprobe")
int alloc_session(struct pt_regs *ctx)
{
	__u32 func = (__u32)bpf_get_attach_cookie(ctx);

	return is_at_entry(ctx) ? any_entry(ctx, func) : at_return(ctx, func);
}

/* At an instruction by which a function returns; its return address is still on the stack.  Or
 * another function that ends there too. */
SEC("uprobe")
int alloc_ret(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);
	__u32 func = st ? func_returning(st, ctx->rsp) : 0;
	struct pt_regs at = {};
	unsigned long addr;

	if (!st || !func)
		return 0;
	copy_returned(&at, ctx);
	addr = any_return(&at, st, func);
	if (!addr)
		return 0;
	at.rip = st->now.ret;
	if (func == FUNC_MMAP || func == FUNC_MREMAP)
		func = func_mapped(st, func, addr);
	if (filter_alloc(st, func, addr, at.rip))
		record_alloc(&at, st, func, &addr);
	call_over(st);
	return 0;
}

/* malloc and free have programs of their own: what is usual is done at once, the rest as for the
 * others.  They know of no filter, which costs instructions even where there is none: where one is
 * requested, malloc has the programs above, and free the one below. */
static __always_inline int note_malloc(struct pt_regs *ctx, struct thread_state *st)
{
	st->now.sp = ctx->rsp;
	st->now.size = ctx->rdi;
	return RETURN;
}

/* Is it, unless this is an entry, the usual return of a malloc?  No other call is under way then:
 * to note one within another is not usual. */
static __always_inline int is_usual_return(const struct pt_regs *ctx, __u64 noted_sp)
{
	return noted_sp == ctx->rsp - 8 && ctx->rax;
}

static __always_inline void record_malloc(struct pt_regs *ctx, struct thread_state *st)
{
	record_alloc(ctx, st, FUNC_MALLOC, &ctx->rax);
	st->now.sp = CALL_NONE;
}

SEC("uprobe")
int malloc_entry(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);

	if (st && st->now.sp == CALL_NONE)
		note_malloc(ctx, st);
	else
		any_entry(ctx, FUNC_MALLOC);
	return 0;
}

SEC("uretprobe")
int malloc_return(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);

	if (!st || !is_usual_return(ctx, st->now.sp))
		return at_return(ctx, FUNC_MALLOC);
	record_malloc(ctx, st);
	return 0;
}

/* A thread without a call under way has none that could return.  (If one had been forgotten, its
 * return would be noted as a call that never returns, and counted as such by the next.) */
SEC("uprobe")
int malloc_session(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);
	__u64 noted_sp = st ? st->now.sp : CALL_UNKNOWN;

	if (noted_sp == CALL_NONE)
		return note_malloc(ctx, st);
	if (is_at_entry(ctx))
		return any_entry(ctx, FUNC_MALLOC);
	if (!st || !is_usual_return(ctx, noted_sp))
		return at_return(ctx, FUNC_MALLOC);
	record_malloc(ctx, st);
	return 0;
}

/* What the kernel would refuse unmaps nothing; what a library unmaps, that allocates, never
 * counted. */
SEC("uprobe")
int munmap_entry(struct pt_regs *ctx)
{
	__u64 addr = ctx->rdi, size = ctx->rsi;
	struct thread_state *st = know_thread(ctx);
	const struct event_code *code = st ? code_of(st->id) : 0;

	if (!code || addr & (PAGE_SIZE - 1) || !size || addr + size < addr ||
	    in_library(code, word_at(ctx->rsp)))
		return 0;
	record_unmap(st, addr, size);
	return 0;
}

/* A free of a thread that is not known yet, or within a call, or that may be left out. */
static __noinline int any_free(struct pt_regs *ctx)
{
	struct thread_state *st = know_thread(ctx);
	__u64 addr = ctx->rdi;
	__u32 nested;

	if (!st)
		return 0;
	nested = is_nested(st, ctx->rsp, FUNC_FREE);
	if (nested && call_func(&st->now) == FUNC_DELETE && st->now.arg == addr)
		return 0;	    /* sent when the operator was entered */
	send_freed(st, FREED_NONE); /* it came before */
	if (filter_free(st, addr))
		record_free(st, addr, nested);
	return 0;
}

/* Of all functions that only free but munmap, if there is a filter. */
SEC("uprobe")
int free_filtered(struct pt_regs *ctx)
{
	return ctx->rdi ? any_free(ctx) : 0;
}

/* The same without filters. */
SEC("uprobe")
int free_entry(struct pt_regs *ctx)
{
	struct thread_state *st;

	if (!ctx->rdi)
		return 0;
	st = state_of_thread(ctx);
	if (!st || st->now.sp != CALL_NONE)
		return any_free(ctx);
	keep_freed(st, ctx->rdi);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
