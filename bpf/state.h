/* state.h - what the programs share: settings, the rings, the processes and the threads' state
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
#include "bpf/pidns.h"
#include "bpf/python.h"

#define PAGE_SIZE 4096u

/* Set by the recorder before the programs are loaded. */
const volatile __u64 pidns_dev; /* of the namespace pidns_ino, to report its numbers */
const volatile __u32 stack_limit = 65536;
const volatile __u32 use_slots; /* a thread's exit and forks are never missed */
const volatile __u32 follow;	/* record the children of recorded processes too */
const volatile __u32 sessions;	/* a function's entry and its return have one link */

/* Set by the recorder when all probes are attached.  Before, no thread is made known, so nothing
 * counts: a block allocated by a function that has its probe already may be freed by one that has
 * none. */
__u64 armed;

/* Set by the recorder while it detaches: a call whose return is not seen any more is no loss. */
__u64 ended;

struct event_drops drops;

/* Set by the recorder: there are Go programs, or interpreters, among the targets. */
__u32 any_go;
__u64 interpreters;

/* Events go into this ring, which is small so that the processor's cache holds it: most of what
 * an event costs is waiting for memory that no cache has. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* the recorder sets the sizes of both */
} front SEC(".maps");

/* And where that has no room, into this one. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

/* The processes that are recorded, by number.  A thread that was found to belong to one is not
 * looked up again until it calls exec; so after a process was removed, some events of its threads
 * may still come.  The programs add the children that follow, and remove what has ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct event_code);
} targets SEC(".maps");

/* An allocator's call under way.  For the most frequent, a malloc with nothing special about it, no
 * more is noted than sp and size. */
struct call {
	__u64 sp;    /* stack pointer at its entry, with CALL_SPECIAL; CALL_NONE or CALL_UNKNOWN */
	__u64 size;  /* bytes requested */
	__u64 arg;   /* realloc, delete, mremap: the old block; posix_memalign: where the new one is
			written; mmap: the protection; mprotect, madvise: the range */
	__u32 func;  /* with CALL_SPECIAL: enum event_func, with CALL_INTERRUPTED */
	__u32 flags; /* mmap, mremap: as given; mprotect: the protection; madvise: the advice */
	__u64 ret;   /* with CALL_BY_RET: where it returns to */
};

/* Of call.sp: a stack pointer is a multiple of 8. */
enum {
	CALL_UNKNOWN = 0, /* the thread was not looked up yet; for the outer call as CALL_NONE */
	CALL_SPECIAL = 1, /* of another function than malloc, or not as usual: func tells */
	CALL_NONE = 2,	  /* no call is under way */
};

/* Of call.func. */
enum {
	CALL_FUNC = 0xff,
	CALL_INTERRUPTED = 1 << 8,  /* a signal came; its handler may have left the call for good.
				       Or it may have been left by an exception */
	CALL_BY_RET = EVENT_BY_RET, /* no return probe has its return address */
};

/* A block as filter.h knows it. */
struct filter_block {
	__u64 size;  /* bytes */
	__u64 site;  /* where the call returned to that allocated it */
	__u32 tid;   /* of the thread that did */
	__u32 state; /* enum filter_state */
};

/* What became of a block. */
enum filter_state {
	FILTER_UNKNOWN = 0,
	FILTER_SENT,
	FILTER_COUNTED,	 /* its thread was only counted */
	FILTER_LEFT_OUT, /* it is not in the sample */
	FILTER_END,	 /* no block: where a mapping ends that begins at its site */
};

/* A thread's part in filter.h. */
struct filter_thread {
	__u64 distance;		      /* to the next sample, in allocations or bytes */
	__u64 drawn;		      /* is it? */
	struct filter_block released; /* by the realloc or mremap under way; all zero: not known */
	struct filter_block rest;     /* of the mapping that is being unmapped */
};

/* What is known of a thread: its outermost call, the one that a signal handler interrupted, and
 * where its stack lies. */
struct thread_state {
	__u64 owner;	/* of the slot that this is, as owner_of() gives it; 0: no thread's */
	__u64 id;	/* process and thread, as in events; set with now.sp */
	__u64 freed;	/* what is to go with the next allocation, with a number, or FREED_* */
	__u64 freed_ns; /* when; set before it */
	__u64 freed_nr; /* of the last of these; in a slot it goes on from thread to thread */
	struct call now, outer;
	__u64 stack_hi, stack_span; /* the stack ends at stack_hi and is so long; 0: not known */
	__u64 stack_usual; /* with so much to its end or less it is that stack, and all is taken */
	__u64 take;	   /* of the current event, when not as usual */
	__u32 stack_most;  /* most stack bytes that an event may have now; 0: no allocations */
	__s32 budget;	   /* bytes to send until the rings are checked again */
	struct filter_thread filter;
};

/* Of thread_state.freed. */
enum {
	FREED_SENT = 0,		       /* each free must be sent by itself */
	FREED_NONE = EVENT_FREED_NONE, /* none is kept, and one may be: see keep_freed() */
};

_Static_assert(__builtin_offsetof(struct thread_state, id) == EVENT_SLOT_ID * 8 &&
		       __builtin_offsetof(struct thread_state, freed) == EVENT_SLOT_FREED * 8 &&
		       __builtin_offsetof(struct thread_state, freed_ns) ==
			       EVENT_SLOT_FREED_NS * 8 &&
		       FREED_NONE < EVENT_FREED_MIN,
	       "as the recorder reads it");

/*
 * The address of a thread's state follows from that of its kernel stack, because the registers that
 * a probe gets are at the top of it: this needs no call into the kernel, of which three a block
 * cost as much as both its records in a ring.  The slot says whose it is.  What lies in a slot is
 * left by a thread's exit, before another can have the same kernel stack.
 *
 * Two threads whose stacks meet in one slot cannot both have it.  The second has its state in its
 * task storage; which also knows the slot of the others, for programs that are given no registers.
 */
#define SLOT_SHIFT 14 /* THREAD_SIZE, from arch/x86/include/asm/page_64_types.h: 16 KiB */
#define SLOT_BYTES (EVENT_SLOT_WORDS * 8) /* a power of 2, as EVENT_SLOTS is */

__u64 slots[EVENT_SLOTS][EVENT_SLOT_WORDS] __attribute__((aligned(SLOT_BYTES)));

_Static_assert(sizeof(struct thread_state) <= SLOT_BYTES, "a state fits in");

/* Of a thread; its owner is that of its slot, or 0: then it has none, and its state lies here. */
struct thread_place {
	__u64 owner;
	struct thread_state state;
};

/* Each thread's place in its task storage, which is gone with the thread. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_place);
} places SEC(".maps");

/* Add one to @counter, which other CPUs may change at the same time. */
static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

/* Process and thread, as the recorder's namespace numbers them; 0: it does not know them. */
static __always_inline __u64 current_id(void)
{
	struct bpf_pidns_info ns = {};

	if (!pidns_ino)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &ns, sizeof(ns)))
		return 0;
	return (__u64)ns.tgid << 32 | ns.pid;
}

/* NULL: the process is not recorded. */
static __always_inline struct event_code *code_of(__u64 id)
{
	__u32 tgid = event_tgid(id);

	return bpf_map_lookup_elem(&targets, &tgid);
}

/* A number for the address of a probe's registers, which no other living thread has.  (Of a pointer
 * itself the verifier makes no number.) */
static __always_inline __u64 owner_of(struct pt_regs *ctx)
{
	__u64 owner = (__u64)ctx;

	asm volatile("%0 -= %1" : "+r"(owner) : "r"(slots));
	return owner;
}

/* An index, and its slot's distance in bytes, by one shift. */
static __always_inline struct thread_state *slot_of(__u64 owner)
{
	__u64 at = owner / ((1ull << SLOT_SHIFT) / SLOT_BYTES) & (EVENT_SLOTS - 1) * SLOT_BYTES;

	return (struct thread_state *)((char *)slots + at);
}

/* The state that belongs to @place: that in a slot, or its own. */
static __always_inline struct thread_state *state_at(struct thread_place *place)
{
	return place->owner ? slot_of(place->owner) : &place->state;
}

/* The state of this thread, if it has any, by its task storage. */
static __noinline struct thread_state *placed_state(void)
{
	struct thread_place *place =
		bpf_task_storage_get(&places, bpf_get_current_task_btf(), 0, 0);

	return place ? state_at(place) : 0;
}

/* The state of this thread, if it has any. */
static __always_inline struct thread_state *state_of_thread(struct pt_regs *ctx)
{
	__u64 owner = owner_of(ctx);
	struct thread_state *st = slot_of(owner);

	return st->owner == owner ? st : placed_state();
}

/* Make a state for this thread.  NULL: no memory. */
static __noinline struct thread_state *make_state(struct pt_regs *ctx)
{
	struct thread_state none = {};
	struct thread_place *place = bpf_task_storage_get(&places, bpf_get_current_task_btf(), 0,
							  BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 owner = owner_of(ctx);
	struct thread_state *st = slot_of(owner);

	if (!place) {
		count(&drops.state);
		return 0;
	}
	if (use_slots && !__sync_val_compare_and_swap(&st->owner, 0, owner)) {
		none.owner = owner;
		none.freed_nr = st->freed_nr;
		*st = none;
		place->owner = owner;
	}
	return state_at(place);
}

/* A thread that shares its memory with no other may keep a free; one with a slot, because the
 * recorder reads those.  (One in doubt, because another process reads that memory, is checked again
 * later.) */
static __always_inline void may_keep_freed(struct thread_state *st)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (st->owner && st->freed == FREED_SENT && bpf_core_field_exists(task->mm->mm_users) &&
	    BPF_CORE_READ(task, mm, mm_users.counter) == 1)
		st->freed = FREED_NONE;
}

/* The state of this thread, made if there is none.  NULL: its process is not recorded (the links
 * filter too, but a child of vfork shares its parent's memory and so its probes), the recording has
 * not begun, or no memory. */
static __noinline struct thread_state *know_thread(struct pt_regs *ctx)
{
	struct thread_state *st = state_of_thread(ctx);
	__u64 id;

	if (st && st->now.sp != CALL_UNKNOWN)
		return st;
	id = armed ? current_id() : 0;
	if (!id || !code_of(id))
		return 0;
	if (!st)
		st = make_state(ctx);
	if (!st)
		return 0;
	st->id = id;
	st->now.sp = CALL_NONE;
	st->stack_most = stack_limit;
	may_keep_freed(st);
	return st;
}

/* This thread ends: another may have its slot. */
static __always_inline void leave_slot(void)
{
	struct thread_place *place =
		bpf_task_storage_get(&places, bpf_get_current_task_btf(), 0, 0);

	if (!place || !place->owner)
		return;
	slot_of(place->owner)->owner = 0;
	place->owner = 0;
}

/* The thread runs another program now: nothing is known of it any more. */
static __always_inline void forget_thread(struct thread_state *st)
{
	st->now.sp = CALL_UNKNOWN;
	st->outer.sp = CALL_NONE;
	st->stack_hi = st->stack_span = st->stack_usual = 0;
}

#endif
