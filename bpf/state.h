/* state.h - what the programs share: settings, the ring, the threads' state
 *
 * Included by mleak.bpf.c only, as the other headers here but event.h: one object, many files.
 */
#ifndef MLEAK_BPF_STATE_H
#define MLEAK_BPF_STATE_H

#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/event.h"
#include "bpf/kernel.h"

#define PAGE_SIZE 4096u

/* Set by the recorder before the programs are loaded. */
const volatile __u32 target_tgid; /* as its own pid namespace numbers it, see pidns_ino */
const volatile __u64 pidns_dev;	  /* the recorder's pid namespace, to give out its numbers; */
const volatile __u64 pidns_ino;	  /* 0: the initial one */
const volatile __u32 stack_limit = 65536;
const volatile __u64 wakeup_bytes = 1 << 20; /* wake the recorder when so much is waiting */

struct event_drops drops;
struct event_code code; /* set by the recorder before it attaches */
__u64 last_alloc_id;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

/* An allocator's call under way. */
struct call {
	__u64 sp;    /* stack pointer at its entry; 0: there is none */
	__u64 size;  /* bytes asked for */
	__u64 arg;   /* realloc, delete, mremap: the old block; posix_memalign: where the new one is
			written */
	__u32 func;  /* enum event_func */
	__u32 flags; /* mmap, mremap: as given */
};

struct filter_block {
	__u64 size; /* bytes */
	__u32 tid;  /* of the thread that allocated it */
	__u32 sent; /* 0: it was only counted */
};

/* A thread's part in filter.h. */
struct filter_thread {
	__u64 distance;		      /* to the next sample, in allocations or bytes */
	__u64 drawn;		      /* is it? */
	struct filter_block released; /* by the realloc under way; all zero: not known */
};

/* A thread's outermost call, the one that a signal handler interrupted, and what was learned of its
 * stack. */
struct thread_state {
	struct call now, outer;
	__u64 stack_lo, stack_hi; /* the stack's mapping, when last looked up */
	struct filter_thread filter;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

/* The thread's process in the upper half, itself in the lower; 0 for a process not asked for.  The
 * links filter too, but a child of vfork shares the target's memory and so its probes. */
static __always_inline __u64 target_thread(void)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (pidns_ino) {
		struct bpf_pidns_info ns = {};

		if (bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &ns, sizeof(ns)))
			return 0;
		id = (__u64)ns.tgid << 32 | ns.pid;
	}
	return id >> 32 == target_tgid ? id : 0;
}

/* The state of this thread; NULL when it has none and @flags do not ask for a new one. */
static __always_inline struct thread_state *state_of_thread(__u64 flags)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, flags);
}

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

#endif
