/* memleak.bpf.c - malloc's result with registers and stack of its caller, and free's argument */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>

#include "event.h"

#define PAGE_SIZE 4096u

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

/* The size that each thread in malloc() asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u64);
	__type(value, __u64);
} in_malloc SEC(".maps");

__u64 last_alloc_id, lost;

SEC("uprobe")
int malloc_entry(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), size = ctx->rdi;

	if (bpf_map_update_elem(&in_malloc, &id, &size, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

/* A read that meets a missing page gives nothing: read to the end of the page, then by pages. */
static __always_inline __u32 copy_stack(__u8 *to, __u64 sp)
{
	__u32 first = PAGE_SIZE - (sp & (PAGE_SIZE - 1)), len;

	if (bpf_probe_read_user(to, first, (void *)sp))
		return 0;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < STACK_ROOM / PAGE_SIZE - 1; i++) {
		len = (first & (2 * PAGE_SIZE - 1)) + i * PAGE_SIZE;
		if (bpf_probe_read_user(to + len, PAGE_SIZE, (void *)(sp + len)))
			return len;
	}
	return len + PAGE_SIZE;
}

SEC("uretprobe")
int malloc_return(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), *size = bpf_map_lookup_elem(&in_malloc, &id);
	/* In the order of DWARF's numbers, see dwunw_event.h. */
	const __u64 regs[DWUNW_MAX_ARCH_REGS] = {
		ctx->rax, ctx->rdx, ctx->rcx, ctx->rbx, ctx->rsi, ctx->rdi,
		ctx->rbp, ctx->rsp, ctx->r8,  ctx->r9,	ctx->r10, ctx->r11,
		ctx->r12, ctx->r13, ctx->r14, ctx->r15, ctx->rip,
	};
	struct event *e;

	if (!size || !ctx->rax)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e) + STACK_ROOM, 0);
	if (!e) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	e->addr = ctx->rax;
	e->size = *size;
	e->is_free = 0;
	e->capture.tgid = id >> 32;
	e->capture.tid = (__u32)id;
	e->capture.alloc_id = __sync_fetch_and_add(&last_alloc_id, 1) + 1;
	e->capture.timestamp = bpf_ktime_get_ns();
	e->capture.ip = ctx->rip;
	e->capture.sp = ctx->rsp;
	/* Where the stack ends was not asked for: it is read until that fails. */
	e->capture.flags = DWUNW_EVENT_RETURN_ADDRESS | DWUNW_EVENT_STACK_UNBOUNDED;
	__builtin_memcpy(e->capture.regs_snapshot, regs, sizeof(regs));
	e->capture.stack_size = copy_stack(e->capture.stack_bytes, ctx->rsp);
	bpf_ringbuf_submit(e, 0);
	bpf_map_delete_elem(&in_malloc, &id);
	return 0;
}

SEC("uprobe")
int free_entry(struct pt_regs *ctx)
{
	struct event e = {.addr = ctx->rdi, .is_free = 1};

	if (ctx->rdi && bpf_ringbuf_output(&events, &e, sizeof(e), 0))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
