/* kmem.bpf.c - what the kernel allocates and frees: a table of live blocks, and their stacks
 *
 * A program that is interrupted by one that runs the same is not run again: the kernel counts that
 * as a recursion miss, which the recorder reads.
 */
#include "bpf/kmem_stack.h"
#include "bpf/kmem_state.h"
#include "bpf/kmem_table.h"
#include "bpf/kmem_thread.h"
#include "bpf/kmem_user.h"

/* What an event tells of a block. */
struct told {
	__u64 size, cache;
	__u32 gfp, kind; /* enum kmem_kind */
};

static __always_inline int is_wanted(__u64 size)
{
	if (size < min_size || size > max_size) {
		count_block(KMEM_FILTERED, size);
		return 0;
	}
	if (sample_every > 1 && bpf_get_prandom_u32() % sample_every) {
		count_block(KMEM_UNSAMPLED, size);
		return 0;
	}
	return 1;
}

static __always_inline void send_alloc(__u64 addr, const struct kmem_block *b)
{
	struct kmem_alloc_event *e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);

	if (!e) {
		count(KMEM_LOST_RING_ALLOC, 1);
		if (user_stacks)
			drop_user(addr);
		return;
	}
	e->head = (struct kmem_event){.kind = KMEM_ALLOC,
				      .tid = b->tid,
				      .addr = addr,
				      .time_ns = b->time_ns,
				      .alloc_ns = b->time_ns,
				      .size = b->size,
				      .cache = b->cache,
				      .stack = b->stack,
				      .block_kind = b->kind};
	e->block = *b;
	e->block.addr = addr;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* A block at @addr. */
static __always_inline void allocated(void *ctx, __u32 point, __u64 addr, const struct told *told)
{
	__u64 id;
	struct kmem_block *b;
	int is_new;
	__u32 stack;

	if (!armed || addr <= KMEM_FILLED || !is_wanted(told->size) ||
	    !is_of_wanted(ctx, told->size))
		return;
	stack = take_stack(ctx, point);
	b = take_place(addr, &is_new);
	if (!b) {
		count(KMEM_LOST_FULL, 1);
		return;
	}
	if (!is_new) {
		count(KMEM_REUSED, 1);
		if (user_stacks && !all_events)
			drop_user(addr);
	}
	id = bpf_get_current_pid_tgid();
	b->time_ns = bpf_ktime_get_ns();
	b->cache = told->cache;
	b->size = told->size > 0xffffffff ? 0xffffffff : (__u32)told->size;
	b->cgroup = (__u32)bpf_get_current_cgroup_id();
	b->tid = (__u32)id;
	b->tgid = (__u32)(id >> 32);
	b->kind = told->kind;
	b->gfp = told->gfp;
	b->stack = (__u16)stack;
	bpf_get_current_comm(b->comm, sizeof(b->comm));
	count(KMEM_ALLOCATED, 1);
	if (user_stacks && is_on_stack(ctx))
		take_user(addr, b->time_ns);
	if (all_events)
		send_alloc(addr, b);
	/* Who reads the table sees it whole: the processor keeps the order of stores. */
	barrier();
	*(volatile __u64 *)&b->addr = addr;
}

/* @size bytes from @addr on, of the block @b, are free. */
static __always_inline void send_free(__u32 kind, __u64 addr, const struct kmem_block *b,
				      __u64 size)
{
	struct kmem_event *e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);

	if (!e) {
		count(KMEM_LOST_RING, 1);
		return;
	}
	*e = (struct kmem_event){.kind = kind,
				 .tid = (__u32)bpf_get_current_pid_tgid(),
				 .addr = addr,
				 .time_ns = bpf_ktime_get_ns(),
				 .alloc_ns = b->time_ns,
				 .size = size,
				 .cache = b->kind == KMEM_PAGES ? 0 : b->cache,
				 .stack = b->stack,
				 .block_kind = b->kind};
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* Forget the block @b, which is at @addr. */
static __noinline int forget_block(struct kmem_block *b, __u64 addr)
{
	__u64 size = b->size - (b->kind == KMEM_PAGES ? b->part : 0);

	if (all_events || b->time_ns < looked_ns) {
		send_free(KMEM_FREE, addr, b, size);
		count(KMEM_SENT, 1);
	} else {
		count_block(KMEM_SHORT, size);
	}
	if (user_stacks && !all_events)
		drop_user(addr);
	barrier();
	*(volatile __u64 *)&b->addr = 0;
	return 1;
}

/* Forget the block at @addr.  False: none is known there. */
static __always_inline int forget(__u64 addr)
{
	struct kmem_block *b = find_block(addr);

	return b ? forget_block(b, addr) : 0;
}

static __always_inline void freed(__u64 addr)
{
	if (armed && addr > KMEM_FILLED && !forget(addr))
		count(KMEM_OLD_FREES, 1);
}

/* The second program: free the block at @addr if the first one was missed. */
static __always_inline void freed_again(__u64 addr)
{
	if (!was_missed(addr))
		return;
	forget(addr);
}

static __always_inline int kmalloc_event(__u64 *ctx, __u32 point)
{
	struct told b = {.kind = KMEM_KMALLOC};

	if (kmalloc_shift) {
		b.size = ARG(ctx, 4);
		b.gfp = (__u32)ARG(ctx, 5);
	} else {
		b.size = ARG(ctx, 3);
		b.gfp = (__u32)ARG(ctx, 4);
	}
	allocated(ctx, point, ARG(ctx, 1), &b);
	return 0;
}

SEC("raw_tp/kmalloc")
int kmalloc(__u64 *ctx)
{
	return kmalloc_event(ctx, KMEM_POINT_KMALLOC);
}

SEC("raw_tp/kfree")
int kfree(__u64 *ctx)
{
	ran_for(ARG(ctx, 1));
	freed(ARG(ctx, 1));
	return 0;
}

SEC("raw_tp/kfree")
int kfree_again(__u64 *ctx)
{
	freed_again(ARG(ctx, 1));
	return 0;
}

static __always_inline int cache_event(__u64 *ctx, __u32 point)
{
	struct told b = {.kind = KMEM_CACHE};

	if (cache_form == CACHE_SIZES) {
		b.size = ARG(ctx, 3);
		b.gfp = (__u32)ARG(ctx, 4);
	} else {
		struct kmem_cache *s = (void *)ARG(ctx, 2);

		b.cache = (__u64)s;
		b.size = BPF_CORE_READ(s, size);
		b.gfp = (__u32)(cache_form == CACHE_BOTH ? ARG(ctx, 5) : ARG(ctx, 3));
	}
	allocated(ctx, point, ARG(ctx, 1), &b);
	return 0;
}

SEC("raw_tp/kmem_cache_alloc")
int kmem_cache_alloc(__u64 *ctx)
{
	return cache_event(ctx, KMEM_POINT_CACHE);
}

SEC("raw_tp/kmem_cache_free")
int kmem_cache_free(__u64 *ctx)
{
	ran_for(ARG(ctx, 1));
	freed(ARG(ctx, 1));
	return 0;
}

SEC("raw_tp/kmem_cache_free")
int kmem_cache_free_again(__u64 *ctx)
{
	freed_again(ARG(ctx, 1));
	return 0;
}

/* Those of a kernel before 6.1, which has them for memory of a given node. */
SEC("?raw_tp/kmalloc_node")
int kmalloc_node(__u64 *ctx)
{
	return kmalloc_event(ctx, KMEM_POINT_KMALLOC_NODE);
}

SEC("?raw_tp/kmem_cache_alloc_node")
int kmem_cache_alloc_node(__u64 *ctx)
{
	return cache_event(ctx, KMEM_POINT_CACHE_NODE);
}

SEC("raw_tp/mm_page_alloc")
int page_alloc(__u64 *ctx)
{
	__u32 order = (__u32)ARG(ctx, 1) & 15;
	struct told b = {
		.kind = KMEM_PAGES,
		.size = PAGE_SIZE << order,
		.gfp = (__u32)ARG(ctx, 2),
	};

	if (order)
		large[order] = 1;
	allocated(ctx, KMEM_POINT_PAGES, ARG(ctx, 0), &b);
	return 0;
}

/* Where the descriptions of the pages of @b end, which begin at @head. */
static __always_inline __u64 pages_end(__u64 head, const struct kmem_block *b)
{
	return head + b->size / PAGE_SIZE * STRUCT_PAGE;
}

/* @gone bytes from @page on, of the run of pages @b, are freed, but not all that
 * is left of it. */
static __always_inline void shrink(__u64 page, struct kmem_block *b, __u64 gone)
{
	if (all_events || b->time_ns < looked_ns)
		send_free(KMEM_SHRINK, page, b, gone);
	__sync_fetch_and_add(&b->part, gone);
}

/* 2^@order pages from @page on are freed.  The kernel splits runs of pages, and frees them in
 * parts, the first of them at any time: what is left stays in the table.  Returns whether a run is
 * known.
 */
static __noinline int forget_pages(__u64 page, __u32 order)
{
	__u64 gone = PAGE_SIZE << (order & 15);

	for (__u32 i = 0; i <= MAX_ORDER; i++) {
		__u64 head = page & ~(((__u64)STRUCT_PAGE << i) - 1);
		struct kmem_block *b;

		if (i && (head == page || !large[i]))
			continue;
		b = find_block(head);
		if (!b || b->kind != KMEM_PAGES || pages_end(head, b) <= page)
			continue;
		if (b->size - b->part <= gone)
			return forget_block(b, head);
		shrink(page, b, gone);
		return 1;
	}
	return 0;
}

/* The kernel may tell one page by both of these.  What the second tells alone is one page. */
SEC("raw_tp/mm_page_free")
int page_free(__u64 *ctx)
{
	ran_for(ARG(ctx, 0));
	if (armed && !forget_pages(ARG(ctx, 0), (__u32)ARG(ctx, 1)))
		count(KMEM_OLD_FREES, 1);
	return 0;
}

SEC("raw_tp/mm_page_free")
int page_free_again(__u64 *ctx)
{
	if (!was_missed(ARG(ctx, 0)))
		return 0;
	forget_pages(ARG(ctx, 0), (__u32)ARG(ctx, 1));
	return 0;
}

SEC("raw_tp/mm_page_free_batched")
int page_free_batched(__u64 *ctx)
{
	__u64 page = ARG(ctx, 0);
	struct kmem_block *b = armed ? find_block(page) : 0;

	if (b && b->size == PAGE_SIZE)
		forget_block(b, page);
	return 0;
}

SEC("?raw_tp/percpu_alloc_percpu")
int percpu_alloc(__u64 *ctx)
{
	struct told b = {.kind = KMEM_PERCPU};

	if (percpu_form) {
		b.size = ARG(ctx, 8);
		b.gfp = (__u32)ARG(ctx, 9);
		allocated(ctx, KMEM_POINT_PERCPU, ARG(ctx, 7), &b);
	} else {
		b.size = ARG(ctx, 2) * nr_cpus;
		allocated(ctx, KMEM_POINT_PERCPU, ARG(ctx, 6), &b);
	}
	return 0;
}

SEC("?raw_tp/percpu_free_percpu")
int percpu_free(__u64 *ctx)
{
	freed(ARG(ctx, 2));
	return 0;
}

/* Not static: the verifier follows it once, not for each object. */
__noinline int free_object(__u64 addr)
{
	freed(addr);
	return 0;
}

/* Many objects are freed at once, which no tracepoint tells: kfree_rcu() does so, too. */
SEC("?fentry/kmem_cache_free_bulk")
int free_bulk(__u64 *ctx)
{
	__u64 v = 0, nr = 0, addr;

	/* "void **" is no type that kernels let be read directly. */
	if (!armed || bpf_get_func_arg(ctx, 1, &nr) || bpf_get_func_arg(ctx, 2, &v))
		return 0;
	for (__u32 i = 0; i < MAX_BULK && i < nr; i++) {
		if (bpf_probe_read_kernel(&addr, sizeof(addr), (__u64 *)v + i))
			break;
		free_object(addr);
	}
	if (nr > MAX_BULK)
		count(KMEM_LOST_FREES, nr - MAX_BULK);
	return 0;
}

/* From 6.18: an object goes by a list of kfree_rcu()'s own. */
SEC("?fentry/__kfree_rcu_sheaf")
int free_sheaf(__u64 *ctx)
{
	__u64 addr = 0;

	if (!bpf_get_func_arg(ctx, 1, &addr))
		freed(addr);
	return 0;
}

/* For the recorder, which calls it by itself: what is in the kernel's memory.  The programs know
 * the caller then (KMEM_READ_OWN), which may have another number in its pid namespace. */
SEC("syscall")
int read_memory(struct kmem_read *r)
{
	struct kmem_cache *s = (void *)r->at;
	char bytes[sizeof(r->bytes)] = {};
	const char *name = 0;
	long err;

	if (r->kind == KMEM_READ_OWN) {
		own_tgid = bpf_get_current_pid_tgid() >> 32;
		r->err = 0;
		return 0;
	}
	if (r->kind == KMEM_READ_BYTES)
		err = bpf_probe_read_kernel(bytes, sizeof(__u64), s);
	else if (bpf_probe_read_kernel(&name, sizeof(name), &s->name))
		err = -1;
	else
		err = bpf_probe_read_kernel_str(bytes, sizeof(bytes), name);
	r->err = (__s32)err;
	for (__u32 i = 0; i < sizeof(bytes) / sizeof(__u64); i++)
		((__u64 *)r->bytes)[i] = ((__u64 *)bytes)[i];
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
