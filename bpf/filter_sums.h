/* filter_sums.h - what threads, processes and call sites have outstanding, where there is a trigger
 */
#ifndef MLEAK_BPF_FILTER_SUMS_H
#define MLEAK_BPF_FILTER_SUMS_H

#include "bpf/state.h"

/* Set by the recorder before the programs are loaded. */
const volatile struct event_filter filter;

/* And what may change. */
struct event_filter_control filter_control;

/* A block of a process. */
struct filter_key {
	__u64 addr;
	__u64 tgid;
};

/* By process and thread, as in events: what it allocated, whichever thread frees it.  The recorder
 * takes out those of threads that have ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, __u64);
	__type(value, struct event_account);
} thread_accounts SEC(".maps");

/* By process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct event_sum);
} process_sums SEC(".maps");

/* By the address that calls return to; of other programs that a process ran before, they are others
 * (filter_program). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct filter_key);
	__type(value, struct event_sum);
} site_sums SEC(".maps");

/* By process, which of the programs that were begun it runs: a number, which is not here of the
 * first one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} process_programs SEC(".maps");

__u32 filter_programs; /* how many programs were begun */

/* Not on the stack, of which an old verifier gives all calls together 512 bytes. */
const volatile struct event_account filter_nothing;

/* What is counted of the thread *@id.  NULL: no room. */
static __always_inline struct event_account *filter_account(const __u64 *id)
{
	struct event_account *account = bpf_map_lookup_elem(&thread_accounts, id);

	if (account)
		return account;
	bpf_map_update_elem(&thread_accounts, id, (void *)&filter_nothing, BPF_NOEXIST);
	account = bpf_map_lookup_elem(&thread_accounts, id);
	if (!account)
		count(&drops.sum);
	return account;
}

/* Add @bytes to the sum of @key in @map.  Returns whether it is sent: it was, or has reached
 * @trigger now. */
static __always_inline int filter_sum_add(void *map, const void *key, __s64 bytes, __s64 trigger)
{
	struct event_sum *sum = bpf_map_lookup_elem(map, key);

	if (!sum) {
		bpf_map_update_elem(map, key, (void *)&filter_nothing, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(map, key);
	}
	if (!sum) {
		count(&drops.sum);
		return 0;
	}
	if (__sync_fetch_and_add(&sum->outstanding, bytes) + bytes >= trigger)
		sum->full = 1;
	return sum->full != 0;
}

/* The number of the program that the process *@tgid runs. */
static __always_inline __u64 filter_program(const void *tgid)
{
	__u32 *program = bpf_map_lookup_elem(&process_programs, tgid);

	return program ? *program : 0;
}

/* Why a block is sent. */
enum { FILTER_BY_THREAD = 1, FILTER_BY_SUM = 2 };

/* Of what @block of the process @tgid is part of, @bytes more are outstanding, or less if below 0.
 * Returns by what that is to be sent. */
static __noinline int filter_add(const struct filter_block *block, __u32 tgid, __s64 bytes)
{
	struct filter_key key = {.tgid = tgid}; /* of all: stack is scarce */
	struct event_account *account;
	int full = 0;

	if (!filter.accounts || !block)
		return 0;
	if (filter.sum_processes)
		full |= filter_sum_add(&process_sums, &key.tgid, bytes,
				       filter_control.trigger_process);
	if (filter.sum_sites) {
		key.addr = block->site;
		key.tgid |= filter_program(&key.tgid) << 32;
		full |= filter_sum_add(&site_sums, &key, bytes, filter_control.trigger_site);
	}
	full *= FILTER_BY_SUM;
	key.addr = key.tgid << 32 | block->tid;
	account = filter_account(&key.addr);
	if (account && __sync_fetch_and_add(&account->outstanding, bytes) + bytes >=
			       filter_control.trigger_bytes)
		full |= FILTER_BY_THREAD;
	return full;
}

/* A block that is only counted is allocated. */
static __noinline int filter_count(const struct filter_block *block, __u32 tgid)
{
	struct event_account *account = 0;
	__u64 owner = (__u64)tgid << 32;

	if (filter.accounts && block) {
		owner |= block->tid;
		account = filter_account(&owner);
	}
	if (!account)
		return 0;
	count(&account->counted.nr);
	__sync_fetch_and_add(&account->counted.bytes, block->size);
	return 0;
}

/* If @block is one: the thread @id frees @nr of it, none if it is a part, with @bytes. */
static __noinline int filter_count_free(const struct filter_block *block, __u64 id, __u64 nr,
					__u64 bytes)
{
	struct event_account *account = 0;
	__u64 owner = id & ~(__u64)~0u;

	if (filter.accounts && block && block->state == FILTER_COUNTED) {
		owner |= block->tid;
		account = filter_account(&owner);
	}
	if (!account)
		return 0;
	if (block->tid == event_tid(id)) {
		__sync_fetch_and_add(&account->freed.nr, nr);
		__sync_fetch_and_add(&account->freed.bytes, bytes);
	} else {
		__sync_fetch_and_add(&account->freed_by_others.nr, nr);
		__sync_fetch_and_add(&account->freed_by_others.bytes, bytes);
	}
	return 0;
}

#endif
