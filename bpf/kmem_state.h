/* kmem_state.h - what the programs of kmem.bpf.c share: settings, the table of blocks, stacks,
 * counts
 *
 * Included by kmem.bpf.c only.
 */
#ifndef MLEAK_BPF_KMEM_STATE_H
#define MLEAK_BPF_KMEM_STATE_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kmem.h"

#define PAGE_SIZE   4096ull
#define STRUCT_PAGE 64 /* bytes; the recorder checks it */
#define MAX_ORDER   10
#define MAX_BULK    512
#define EEXIST	    17

/* The @n-th argument of a raw tracepoint, or of a function: read so that the verifier knows which,
 * whatever the compiler makes of two of them.  Raw tracepoints' arguments have no types: where they
 * have some, kernels before 6.8 refuse those of type "const void *". */
#define ARG(ctx, n)                                                                           \
	({                                                                                    \
		__u64 arg_;                                                                   \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(arg_) : "r"(ctx), "i"(8 * (n))); \
		arg_;                                                                         \
	})

/* A slab cache; of the running kernel, by CO-RE. */
struct kmem_cache {
	unsigned int size, object_size;
	const char *name;
} __attribute__((preserve_access_index));

/* Set by the recorder before the programs are loaded. */
const volatile __u32 all_events;    /* each allocation is sent */
const volatile __u32 kmalloc_shift; /* kmalloc's event names its cache, too (5.19 and 6.0) */
const volatile __u32 cache_form;    /* what kmem_cache_alloc's event has, see below */
const volatile __u32 percpu_form;   /* percpu_alloc_percpu tells bytes and flags: from 5.19 */
const volatile __u32 nr_cpus = 1;   /* possible ones */
const volatile __u64 min_size, max_size = ~0ull;
const volatile __u32 sample_every = 1;
const volatile __u32 only_cgroup;
const volatile __u64 cgroup;
const volatile __u32 only_comm;
const volatile char comm[KMEM_COMM];

/* What kmem_cache_alloc tells behind the address, by kernel version. */
enum {
	CACHE_NEW,   /* from 6.1: the cache, gfp */
	CACHE_SIZES, /* to 5.18: bytes requested, bytes allocated, gfp */
	CACHE_BOTH,  /* 5.19, 6.0: the cache, bytes requested, bytes allocated, gfp */
};

/* A block that was allocated before may have been written by the recorder. */
__u64 looked_ns;
/* Pages of this order were allocated; only then may one be part of them. */
__u8 large[16];

/* Set when all programs are attached, and taken back before they are detached. */
__u32 armed;
__u32 own_tgid; /* the recorder, as the initial pid namespace numbers it */

/* Distinct stacks, by the number that bpf_get_stackid() gives them. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, KMEM_STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, KMEM_STACK_DEPTH * sizeof(__u64));
} stacks SEC(".maps");

/* Stacks whose place in the first map is taken by another one. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, KMEM_SPARE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, KMEM_STACK_DEPTH * sizeof(__u64));
} spare_stacks SEC(".maps");

/* Events for the recorder. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} ring SEC(".maps");

/* By enum kmem_count. */
struct counts {
	__u64 v[KMEM_COUNT_NR];
};

/* What was counted, for each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

/* Add @more to what is counted as @what. */
static __always_inline void count(__u32 what, __u64 more)
{
	__u32 zero = 0;
	struct counts *c = bpf_map_lookup_elem(&counts, &zero);

	/* An interrupt on this CPU may count, too. */
	if (c && what < KMEM_COUNT_NR)
		__sync_fetch_and_add(&c->v[what], more);
}

/* The same for one block of @bytes; @what is followed by its bytes. */
static __always_inline void count_block(__u32 what, __u64 bytes)
{
	count(what, 1);
	count(what + 1, bytes);
}

#define NOTES 8

/* The blocks for which first programs run, those of interrupts on top: see ran_for(). */
struct notes {
	__u64 addr[NOTES];
	__u32 nr;
};

/* For each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct notes);
} notes SEC(".maps");

/*
 * A program that is interrupted does not run for what the interrupt frees, and a free that is
 * missed looks like a leak.  So a second program is at each of these places, which sees whether the
 * first one ran.  Only an interrupt of an interrupt, in just these two, is missed: it is counted.
 *
 * The first notes the block on top of those of what it interrupted, the second takes it off.  Where
 * the second one is missed, one is left: they are too many at some time, and all are forgotten.
 */

/* Note that the first program runs for the block at @addr. */
static __always_inline void ran_for(__u64 addr)
{
	__u32 zero = 0, nr;
	struct notes *n = bpf_map_lookup_elem(&notes, &zero);

	if (!n)
		return;
	nr = n->nr < NOTES ? n->nr : 0;
	n->addr[nr & (NOTES - 1)] = addr;
	barrier();
	n->nr = nr + 1;
}

/* In the second program: was the first one missed for the block at @addr? */
static __always_inline int was_missed(__u64 addr)
{
	__u32 zero = 0, nr;
	struct notes *n = bpf_map_lookup_elem(&notes, &zero);

	nr = n ? n->nr : 0;
	if (n && nr && n->addr[(nr - 1) & (NOTES - 1)] == addr) {
		n->nr = nr - 1;
		return 0;
	}
	return armed && addr;
}

#endif
