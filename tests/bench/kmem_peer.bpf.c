/* kmem_peer.bpf.c - what bcc's memleak does for the kernel's memory, event by event: the same maps,
 * helpers and tracepoints, written anew to measure against (libbpf-tools/memleak at 6d0a964c) */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define STACKS 10240
#define DEPTH  127
#define BLOCKS 1000000

struct info {
	__u64 size, time_ns;
	int stack;
};

/* Bytes in the lower 40 bits, blocks above. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, __u64);
	__type(value, __u64);
} combined SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, __u32);
	__type(value, __u64);
} sizes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BLOCKS);
	__type(key, __u64);
	__type(value, struct info);
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DEPTH * sizeof(__u64));
} stacks SEC(".maps");

static __always_inline void add(__u64 stack, __u64 size, int sign)
{
	__u64 *sum = bpf_map_lookup_elem(&combined, &stack), none = 0;

	if (!sum) {
		bpf_map_update_elem(&combined, &stack, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&combined, &stack);
	}
	if (sum)
		__sync_fetch_and_add(sum, sign > 0 ? size + (1ull << 40) : -(size + (1ull << 40)));
}

static __always_inline int allocated(void *ctx, __u64 addr, __u64 bytes)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct info info = {0};
	__u64 *size;

	bpf_map_update_elem(&sizes, &tid, &bytes, BPF_ANY);
	size = bpf_map_lookup_elem(&sizes, &tid);
	if (!size)
		return 0;
	info.size = *size;
	bpf_map_delete_elem(&sizes, &tid);
	if (!addr)
		return 0;
	info.time_ns = bpf_ktime_get_ns();
	info.stack = (int)bpf_get_stackid(ctx, &stacks, 0);
	bpf_map_update_elem(&blocks, &addr, &info, BPF_ANY);
	add((__u64)info.stack, info.size, 1);
	return 0;
}

static __always_inline int freed(__u64 addr)
{
	struct info *info = bpf_map_lookup_elem(&blocks, &addr);

	if (!info)
		return 0;
	bpf_map_delete_elem(&blocks, &addr);
	add((__u64)info->stack, info->size, -1);
	return 0;
}

/* The events as tracefs has them: events/kmem/NAME/format of Linux 6.1 and later. */
struct alloc_event {
	__u64 common, call_site, ptr, bytes_req, bytes_alloc;
};

struct free_event {
	__u64 common, call_site, ptr;
};

struct page_event {
	__u64 common, pfn;
	__u32 order;
};

SEC("tracepoint/kmem/kmalloc")
int kmalloc(struct alloc_event *e)
{
	return allocated(e, e->ptr, e->bytes_alloc);
}

SEC("tracepoint/kmem/kfree")
int kfree(struct free_event *e)
{
	return freed(e->ptr);
}

SEC("tracepoint/kmem/kmem_cache_alloc")
int cache_alloc(struct alloc_event *e)
{
	return allocated(e, e->ptr, e->bytes_alloc);
}

SEC("tracepoint/kmem/kmem_cache_free")
int cache_free(struct free_event *e)
{
	return freed(e->ptr);
}

SEC("tracepoint/kmem/mm_page_alloc")
int page_alloc(struct page_event *e)
{
	return allocated(e, e->pfn, 4096ull << (e->order & 15));
}

SEC("tracepoint/kmem/mm_page_free")
int page_free(struct page_event *e)
{
	return freed(e->pfn);
}

char LICENSE[] SEC("license") = "GPL";
