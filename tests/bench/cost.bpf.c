/* cost.bpf.c - programs to compare mleak's with: empty ones, bcc's memleak in outline, a counter
 *
 * Loaded by cost_probes.c, measured by cost.py; the counter is what tests/load/test_instructions.py
 * takes as the least that watching an allocator needs.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define HASH_ENTRIES  1000000
#define STACK_ENTRIES 10240
#define STACK_DEPTH   127

SEC("uprobe")
int empty(struct pt_regs *ctx)
{
	return 0;
}

/* The outline of bcc's memleak: three hash maps and the kernel's walk of frame pointers. */

struct block {
	__u64 size, time_ns;
	__s32 stack_id;
	__u32 pad;
};

struct sum {
	__u64 bytes, blocks;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACK_ENTRIES);
	__type(key, __u32);
	__type(value, __u64);
} sizes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HASH_ENTRIES);
	__type(key, __u64);
	__type(value, struct block);
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACK_ENTRIES);
	__type(key, __u64);
	__type(value, struct sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACK_ENTRIES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, STACK_DEPTH * sizeof(__u64));
} stacks SEC(".maps");

SEC("uprobe")
int hash_malloc(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 size = ctx->rdi;

	bpf_map_update_elem(&sizes, &tid, &size, BPF_ANY);
	return 0;
}

static __always_inline struct sum *sum_of_stack(__u64 stack)
{
	struct sum none = {}, *sum = bpf_map_lookup_elem(&sums, &stack);

	if (sum)
		return sum;
	bpf_map_update_elem(&sums, &stack, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sums, &stack);
}

SEC("uprobe")
int hash_malloc_return(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 *size = bpf_map_lookup_elem(&sizes, &tid), addr = ctx->rax;
	struct block b = {};
	struct sum *sum;

	if (!size)
		return 0;
	b.size = *size;
	bpf_map_delete_elem(&sizes, &tid);
	if (!addr)
		return 0;
	b.time_ns = bpf_ktime_get_ns();
	b.stack_id = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	bpf_map_update_elem(&blocks, &addr, &b, BPF_ANY);
	sum = sum_of_stack((__u64)b.stack_id);
	if (sum) {
		__sync_fetch_and_add(&sum->bytes, b.size);
		__sync_fetch_and_add(&sum->blocks, 1);
	}
	return 0;
}

SEC("uprobe")
int hash_free(struct pt_regs *ctx)
{
	__u64 addr = ctx->rdi;
	struct block *b = bpf_map_lookup_elem(&blocks, &addr);
	struct sum *sum;

	if (!b)
		return 0;
	sum = sum_of_stack((__u64)b->stack_id);
	if (sum) {
		__sync_fetch_and_add(&sum->bytes, -b->size);
		__sync_fetch_and_add(&sum->blocks, -1);
	}
	bpf_map_delete_elem(&blocks, &addr);
	return 0;
}

/* Plain counting: the size noted at the entry is added up at the return. */

struct call {
	__u64 size;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

__u64 counted_bytes;

SEC("uprobe")
int count_malloc(struct pt_regs *ctx)
{
	struct call *call = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0,
						 BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (call)
		call->size = ctx->rdi;
	return 0;
}

SEC("uprobe")
int count_malloc_return(struct pt_regs *ctx)
{
	struct call *call = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, 0);

	if (call)
		__sync_fetch_and_add(&counted_bytes, call->size);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
