/* mleak.bpf.c - the probes: what an allocation and a free leave in the rings
 *
 * An allocation is noted at the entry of the outermost allocator and sent at its return, with the
 * registers and the stack of its caller.  At that moment no return probe of ours is pending, so no
 * return address in the copied stack has been replaced.  A free is sent at its entry.  The rings
 * are one order, so an address is never allocated again before its free was seen.
 */
#include "bpf/arguments.h"
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
static __noinline int delete_entry(struct thread_state *st, __u64 sp, __u64 addr, __u32 cookie)
{
	struct call *call;

	if (!st || !addr)
		return NO_RETURN;
	call = call_begin(st, sp, cookie);
	if (call)
		call->arg = addr;
	else if (call_func(&st->now) == FUNC_DELETE && st->now.arg == addr)
		return NO_RETURN;
	if (filter_free(st, addr))
		record_free(st, addr, !call);
	return call ? RETURN : NO_RETURN;
}

/* The free of @addr, of a thread that is not known yet, or within a call, or that may be left
 * out. */
static __noinline int any_free(struct pt_regs *ctx, __u64 addr)
{
	struct thread_state *st = addr ? know_thread(ctx) : 0;
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

/* What the kernel would refuse unmaps nothing; what a library unmaps, that allocates, never
 * counted. */
static __noinline int munmap_entry(struct pt_regs *ctx, struct thread_state *st)
{
	__u64 addr = ctx->rdi, size = ctx->rsi;
	const struct event_code *code = st ? code_of(st->id) : 0;

	if (code && !(addr & (PAGE_SIZE - 1)) && size && addr + size >= addr &&
	    !in_library(code, word_at(ctx->rsp)))
		record_unmap(st, addr, size);
	return NO_RETURN;
}

/* Bytes that a call of @func asks for. */
static __always_inline __u64 bytes_asked(const struct arguments *args, __u32 func)
{
	switch (func) {
	case FUNC_CALLOC:
		return args->of[0] * args->of[1];
	case FUNC_REALLOC:
	case FUNC_ALIGNED_ALLOC:
	case FUNC_MEMALIGN:
		return args->of[1];
	case FUNC_POSIX_MEMALIGN:
		return args->of[2];
	case FUNC_REALLOCARRAY:
		return array_size(args->of[1], args->of[2]);
	default:
		return args->of[0];
	}
}

/* Any function that returns something, operator delete, and munmap. */
static __noinline int any_entry(struct pt_regs *ctx, __u32 cookie)
{
	struct thread_state *st = know_thread(ctx);
	__u32 func = cookie & CALL_FUNC;
	struct arguments args;
	struct call *call;

	if (!st)
		return NO_RETURN;
	if (func == FUNC_MUNMAP)
		return munmap_entry(ctx, st);
	if (func == FUNC_MMAP || func == FUNC_MREMAP)
		return map_entry(ctx, st, cookie);
	if (func == FUNC_MPROTECT || func == FUNC_MADVISE)
		return pages_entry(ctx, st, cookie);
	args = arguments_of(ctx, cookie);
	if (func == FUNC_DELETE)
		return delete_entry(st, ctx->rsp, args.of[0], cookie);
	call = call_begin(st, ctx->rsp, cookie);
	if (!call)
		return NO_RETURN; /* the outermost counts */
	call->arg = args.of[0];
	call->size = bytes_asked(&args, func);
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

/* The call of @func that returns now, to the stack pointer @sp and with @result, has allocated a
 * block; 0: it has not, and everything is done. */
static __noinline __u64 any_return(struct thread_state *st, __u64 sp, __u64 result, __u32 func)
{
	__u64 addr;

	if (!st || !call_returns(st, sp, func))
		return 0;
	addr = block_of(st, result);
	if (!addr) {
		restore(st);
		call_over(st);
	}
	return addr;
}

/* Where the call returns that @cookie is about, or that instruction of it: what it has allocated is
 * sent.  At an instruction its return address is still on the stack. */
static __noinline int at_return(struct pt_regs *ctx, __u32 cookie)
{
	struct thread_state *st = state_of_thread(ctx);
	__u32 func = cookie & CALL_FUNC;
	__u64 sp = ctx->rsp, result = ctx->rax, site = ctx->rip;
	struct returned r;

	if (!st)
		return 0;
	if (cookie & EVENT_RET_SOON && !returns_soon(ctx, cookie))
		return 0;
	if (cookie & EVENT_RET) {
		func = func_returning(st, sp); /* or another function that ends there too */
		sp += 8;
		if (cookie & EVENT_RET_SOON)
			result = register_of(ctx, cookie >> EVENT_RET_REG_SHIFT & 0xf);
		/* Not one or the other: the verifier wants to know what of @ctx is read. */
		if (cookie & EVENT_RET_MEMSET)
			result = *(const volatile unsigned long *)&ctx->rdi;
	}
	r.addr = func ? any_return(st, sp, result, func) : 0;
	if (!r.addr)
		return 0;
	if (cookie & EVENT_RET)
		site = st->now.ret;
	if (func == FUNC_MMAP || func == FUNC_MREMAP)
		func = func_mapped(st, func, r.addr);
	if (filter_alloc(st, func, r.addr, site)) {
		r.func = func;
		copy_regs(r.regs, ctx);
		r.regs[EVENT_RSP] = sp;
		r.regs[EVENT_RIP] = site;
		record_alloc(st, &r);
	}
	call_over(st);
	return 0;
}

/* A program for the session kind of links (6.13) runs at a function's entry and at its return:
 * which is it?  (A kfunc tells, too; but where it is missing libbpf looks for it in the BTF of
 * modules, which takes CAP_SYS_ADMIN.) */
static __always_inline int is_at_entry(struct pt_regs *ctx)
{
	return bpf_get_func_ip(ctx) == ctx->rip;
}

/* malloc and free: what is usual is done at once, the rest as for the others.  This knows of no
 * filter, which would cost instructions even where there is none. */
static __always_inline void note_malloc(struct pt_regs *ctx, struct thread_state *st)
{
	st->now.sp = ctx->rsp;
	st->now.size = ctx->rdi;
}

/* Is it, unless this is an entry, the usual return of a malloc?  No other call is under way then:
 * to note one within another is not usual. */
static __always_inline int is_usual_return(const struct pt_regs *ctx, __u64 noted_sp)
{
	noted_sp += 8;
	barrier_var(noted_sp); /* the other way round takes an instruction more */
	return noted_sp == ctx->rsp && ctx->rax;
}

/*
 * All functions that return something, operator delete and munmap: their entries, their returns and
 * the instructions by which they return, as the cookie says.  One program, because what takes time
 * at an attach is what the verifier has to follow.
 *
 * With session links it is at a function's entry and at its return.  That way the return is probed
 * only where it is to be seen: not where that would kill the thread, either.  free is in the same
 * link then: what takes time at the end is that the kernel waits for each link.
 */
SEC("uprobe")
int alloc_any(struct pt_regs *ctx)
{
	__u32 cookie = (__u32)bpf_get_attach_cookie(ctx);
	int result = NO_RETURN;

	if (cookie & (EVENT_RET | EVENT_RETURN) || (sessions && !is_at_entry(ctx)))
		result = at_return(ctx, cookie);
	else if ((cookie & CALL_FUNC) == FUNC_FREE)
		any_free(ctx, arguments_of(ctx, cookie).of[0]);
	else
		result = any_entry(ctx, cookie);
	if (!sessions)
		return 0;
	return cookie & EVENT_RET ? NO_RETURN : result;
}

/*
 * With session links, the entries that those must not be on: of functions whose returns must not be
 * probed (EVENT_BY_RET).  Session links ask the program about returns only in the processes that
 * are recorded.  In a child, which has its parent's breakpoints, they probe the return wherever
 * they are.
 */
SEC("uprobe")
int alloc_entry(struct pt_regs *ctx)
{
	any_entry(ctx, (__u32)bpf_get_attach_cookie(ctx));
	return 0;
}

/* alloc_any, for the programs below. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} general SEC(".maps");

/* This is not usual: go on with alloc_any.  It does not return but where that is missing. */
static __always_inline void go_on(struct pt_regs *ctx)
{
	bpf_tail_call(ctx, &general, 0);
	count(&drops.alloc); /* it is there */
}

/* End the program with @result, a constant.  By instructions of its own: from one end for all, the
 * usual ways would be a jump and a register away. */
#define END_PROGRAM(result)                                    \
	do {                                                   \
		asm volatile("r0 = %0\n\texit" ::"i"(result)); \
		__builtin_unreachable();                       \
	} while (0)

/*
 * The same as alloc_any with session links and without a filter.  Only a malloc is noted by nothing
 * but its stack pointer: its return needs no cookie.
 *
 * A thread without a call under way has none that could return.  (If one had been forgotten, its
 * return would be noted as a call that never returns, and counted as such by the next.)
 */
SEC("uprobe")
int alloc_session(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);
	__u64 noted_sp = st ? st->now.sp : CALL_UNKNOWN;
	__u32 cookie;

	if (noted_sp == CALL_NONE) {
		cookie = (__u32)bpf_get_attach_cookie(ctx);
		if (cookie == FUNC_MALLOC) {
			note_malloc(ctx, st);
			END_PROGRAM(RETURN);
		}
		if (cookie == FUNC_FREE) {
			if (ctx->rdi)
				keep_freed(st, ctx->rdi);
			END_PROGRAM(NO_RETURN);
		}
	} else if (st && !is_at_entry(ctx) && is_usual_return(ctx, noted_sp) &&
		   record_usual(ctx, st)) {
		st->now.sp = CALL_NONE;
		END_PROGRAM(RETURN);
	}
	go_on(ctx);
	return RETURN;
}

/* Without session links malloc and free have links and programs of their own.  Where a filter is
 * requested, malloc has the program above, and free the one below. */
SEC("uprobe")
int malloc_entry(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);

	if (!st || st->now.sp != CALL_NONE)
		go_on(ctx);
	else
		note_malloc(ctx, st);
	return 0;
}

SEC("uretprobe")
int malloc_return(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);

	if (!st || !is_usual_return(ctx, st->now.sp) || !record_usual(ctx, st))
		go_on(ctx);
	else
		st->now.sp = CALL_NONE;
	return 0;
}

/* Of all functions that only free but munmap, if there is a filter. */
SEC("uprobe")
int free_filtered(struct pt_regs *ctx)
{
	return any_free(ctx, ctx->rdi);
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
		return any_free(ctx, ctx->rdi);
	keep_freed(st, ctx->rdi);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
