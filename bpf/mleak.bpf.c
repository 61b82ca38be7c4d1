/* mleak.bpf.c - the probes: what an allocation and a free leave in the ring buffer
 *
 * An allocation is noted at the entry of the outermost allocator and sent at its return, with the
 * registers and the stack of its caller.  At that moment no return probe of ours is pending, so no
 * return address in the copied stack has been replaced.  A free is sent at its entry.  With one
 * globally ordered ring, an address is therefore never given out again before its free was seen.
 */
#include "bpf/calls.h"
#include "bpf/filter.h"
#include "bpf/send.h"
#include "bpf/state.h"

#define MAP_FIXED	 0x10
#define MAP_ANONYMOUS	 0x20
#define MAP_STACK	 0x20000
#define MREMAP_FIXED	 2
#define MREMAP_DONTUNMAP 4
#define MAX_ERRNO	 4095

/* Not 0 by overflow: with a size of 0, a realloc that returns NULL has freed its block. */
static __always_inline __u64 array_size(__u64 nr, __u64 size)
{
	return nr * size || !nr || !size ? nr * size : ~0ull;
}

/* Is a file mapped at the address looked up? */
static long note_file(struct task_struct *task, struct vm_area_struct *vma, int *is_file)
{
	(void)task;
	*is_file = vma->vm_file != 0;
	return 0;
}

static __always_inline int maps_file(__u64 addr)
{
	int is_file = 0;

	if (bpf_core_enum_value_exists(enum bpf_func_id___mleak, BPF_FUNC_find_vma___mleak))
		bpf_find_vma(bpf_get_current_task_btf(), addr, note_file, &is_file, 0);
	return is_file;
}

/* mmap(addr, length, prot, flags, fd, offset), mremap(old, old_size, new_size, flags, new).  They
 * do not count when a library makes them that allocates, or the C library: then it is an arena or a
 * thread's stack. */
static __noinline int map_entry(struct pt_regs *ctx, struct thread_state *st, __u64 id, __u64 func)
{
	struct call *call;

	if (!st || code.stale || in_library(word_at(ctx->rsp)) ||
	    (func == FUNC_MREMAP && maps_file(ctx->rdi)))
		return 0;
	call = call_begin(st, ctx->rsp);
	if (!call)
		return 0;
	call->func = func;
	call->flags = (__u32)ctx->rcx;
	call->arg = ctx->rdi;
	call->size = ctx->rsi;
	if (func == FUNC_MMAP)
		return 0;
	call->size = ctx->rdx;
	filter_unmap(id, ctx->rdi, ctx->rsi);
	if (ctx->rsi && !(call->flags & MREMAP_DONTUNMAP) && send_range(id, ctx->rdi, ctx->rsi))
		count(&drops.unmap);
	return 0;
}

/* Operator delete of an allocator: it frees by itself, or calls free, or another operator. */
static __noinline int delete_entry(struct pt_regs *ctx, struct thread_state *st, __u64 id)
{
	__u64 addr = ctx->rdi;
	struct call *call;

	if (!st || !addr)
		return 0;
	call = call_begin(st, ctx->rsp);
	if (call) {
		call->func = FUNC_DELETE;
		call->arg = addr;
	} else if (st->now.func == FUNC_DELETE && st->now.arg == addr) {
		return 0;
	}
	if (filter_free(id, addr) && send_small(EVENT_FREE, id, addr, !call))
		count(&drops.free);
	return 0;
}

/* Of all functions that return something, and operator delete. */
SEC("uprobe")
int alloc_entry(struct pt_regs *ctx)
{
	__u64 id = target_thread(), func = bpf_get_attach_cookie(ctx);
	struct thread_state *st;
	struct call *call;

	if (!id || code.ended)
		return 0;
	st = state_of_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st) {
		count(&drops.state);
		return 0;
	}
	if (func == FUNC_DELETE)
		return delete_entry(ctx, st, id);
	if (func == FUNC_MMAP || func == FUNC_MREMAP)
		return map_entry(ctx, st, id, func);
	call = call_begin(st, ctx->rsp);
	if (!call)
		return 0; /* the outermost counts */
	call->func = func;
	call->arg = ctx->rdi;
	call->size = ctx->rdi;
	if (func == FUNC_CALLOC)
		call->size = ctx->rdi * ctx->rsi;
	else if (func == FUNC_REALLOC || func == FUNC_ALIGNED_ALLOC || func == FUNC_MEMALIGN)
		call->size = ctx->rsi;
	else if (func == FUNC_POSIX_MEMALIGN)
		call->size = ctx->rdx;
	else if (func == FUNC_REALLOCARRAY)
		call->size = array_size(ctx->rsi, ctx->rdx);
	if ((func == FUNC_REALLOC || func == FUNC_REALLOCARRAY) && call->arg &&
	    filter_release(st, id, call->arg) && send_small(EVENT_RELEASE, id, call->arg, 0))
		count(&drops.release);
	return 0;
}

/* What @call, which returns @result, has allocated; 0: nothing, and what it had released lives. */
static __noinline __u64 mapped(const struct call *call, __u64 id, __u64 result)
{
	__u32 replaces;

	if (!call || result >= -(__u64)MAX_ERRNO)
		return 0;
	replaces = call->func == FUNC_MREMAP ? MREMAP_FIXED : MAP_FIXED;
	if (call->flags & replaces && send_range(id, result, call->size))
		count(&drops.unmap);
	/* The pages of a file are the file's. */
	if (call->func == FUNC_MMAP &&
	    (!(call->flags & MAP_ANONYMOUS) || (code.is_static && call->flags & MAP_STACK)))
		return 0;
	return result;
}

SEC("uretprobe")
int alloc_return(struct pt_regs *ctx)
{
	__u64 id = target_thread(), func = bpf_get_attach_cookie(ctx), addr = ctx->rax;
	struct thread_state *st;
	struct call call;

	if (!id)
		return 0;
	st = state_of_thread(0);
	if (!st || !call_end(st, ctx->rsp, func, &call) || func == FUNC_DELETE)
		return 0;
	if (func == FUNC_MMAP || func == FUNC_MREMAP) {
		addr = mapped(&call, id, addr);
	} else if (func == FUNC_POSIX_MEMALIGN) {
		if ((int)ctx->rax != 0)
			return 0;
		if (bpf_probe_read_user(&addr, sizeof(addr), (void *)call.arg)) {
			count(&drops.pointer);
			return 0;
		}
	}
	if (addr) {
		if (filter_alloc(st, &call, id, addr))
			record_alloc(ctx, st, &call, id, addr);
	} else if ((func == FUNC_REALLOC || func == FUNC_REALLOCARRAY || func == FUNC_MREMAP) &&
		   call.size && call.arg && filter_restore(st, &call, id) &&
		   send_small(EVENT_RESTORE, id, call.arg, 0)) {
		count(&drops.restore);
	}
	return 0;
}

/* What the kernel would refuse unmaps nothing; what a library unmaps, that allocates, never
 * counted.
 */
static __always_inline int unmap_entry(const struct pt_regs *ctx, __u64 id)
{
	__u64 addr = ctx->rdi, size = ctx->rsi;

	if (addr & (PAGE_SIZE - 1) || !size || addr + size < addr || in_library(word_at(ctx->rsp)))
		return 0;
	filter_unmap(id, addr, size);
	if (send_range(id, addr, size))
		count(&drops.unmap);
	return 0;
}

/* Of all functions that only free. */
SEC("uprobe")
int free_entry(struct pt_regs *ctx)
{
	__u64 id = target_thread(), addr = ctx->rdi;
	struct thread_state *st;
	__u32 nested = 0;

	if (!id || !addr)
		return 0;
	if (bpf_get_attach_cookie(ctx) == FUNC_MUNMAP)
		return unmap_entry(ctx, id);
	st = state_of_thread(0);
	if (st && st->now.sp && ctx->rsp <= st->now.sp)
		nested = is_nested(st, ctx->rsp);
	if (nested && st->now.func == FUNC_DELETE && st->now.arg == addr)
		return 0; /* sent when the operator was entered */
	if (filter_free(id, addr) && send_small(EVENT_FREE, id, addr, nested))
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
	code.stale = 1;
	filter_exec(id);
	st = state_of_thread(0);
	if (st)
		st->now.sp = st->outer.sp = st->stack_lo = st->stack_hi = 0;
	if (send_small(EVENT_EXEC, id, 0, (__u32)ctx->args[1] != (__u32)self))
		count(&drops.exec);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
