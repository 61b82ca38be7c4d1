/* thread_ring.h - a thread's way into its ring: what an event passes each time
 *
 * A thread that allocates writes into a ring of its own; a signal handler that interrupts it in
 * this takes another one, its next lane, so that a half-written record is never touched.
 */
#ifndef LIBPRELOAD_THREAD_RING_H
#define LIBPRELOAD_THREAD_RING_H

#include <x86intrin.h>

#include "record/libpreload/event/block_table.h"
#include "record/libpreload/preload.h"
#include "record/libpreload/python_record.h"

#define PRELOAD_NR_LANES 3

/* A ring as its producer sees it; memory of the target alone. */
struct thread_ring {
	struct preload_ring *ring;
	uint8_t *data;
	uint64_t size;		/* of data */
	uint64_t head, tail;	/* the tail as last read */
	uint64_t last_time;	/* of the event written last */
	uint64_t last_sp;	/* and its stack pointer, */
	uint64_t saved[6];	/* and registers */
	bool based, regs_known; /* the recorder knows these, too */
	/* The event that is being written was made here; 0: none is.  What it counts as if it is
	 * lost, and where the ring's head was before it. */
	uint64_t entered_sp, entered_head;
	uint8_t entered_kind;
	uint64_t stalled_tail; /* waiting for room was in vain, and the tail was here */
	bool stalled;
	struct preload_image known;
	uint16_t changed[PRELOAD_MAX_SLICES + 7]; /* indices of slices */
	struct preload_known image;
	struct {
		struct python_walk walk;
		struct event_frame frames[EVENT_PYTHON_FRAMES];
		/* The interpreter's state that is this thread's; one that interpreted, and one that
		 * was kept by the key, and were not; 0: none. */
		uint64_t own, other, refused;
		uint32_t passed; /* times that the latter two were met again */
	} python;		 /* of the event that is being written */
};

/* What a thread remembers of sampling. */
struct preload_sampler {
	uint64_t state, distance; /* units left out before the next that is taken */
	bool drawn;
	enum { PRELOAD_RELEASED_NONE, PRELOAD_RELEASED_KEPT, PRELOAD_RELEASED_OTHER } released;
};

#define PRELOAD_MOST_UNMAPPED 8u /* mappings that one call takes off */

/* What was taken off a mapping. */
struct preload_unmapped {
	uint64_t addr;		 /* where it began */
	struct block_info block; /* as it was */
	uint64_t bytes;		 /* taken off */
	uint64_t rest;		 /* where the rest begins; 0: there is none */
};

/* What a thread remembers where threads are recorded or only counted. */
struct preload_counter {
	uint32_t tid; /* its own id; 0: not asked for yet */
	struct preload_account *account;
	uint64_t released_addr; /* of the block that realloc released last; 0: another call came */
	struct block_info released;
	uint64_t unmapped_addr; /* what was unmapped last, perhaps by mremap, which may fail */
	uint32_t nr_unmapped;
	struct preload_unmapped unmapped[PRELOAD_MOST_UNMAPPED];
};

/* What a thread knows of its own events. */
struct preload_thread {
	struct thread_ring *lanes[PRELOAD_NR_LANES]; /* those in use come first */
	uint64_t stack_lo, stack_hi;		     /* equal: not looked yet */
	/* What is called now is called by this library, at this stack pointer; 0: it is not. */
	uint64_t internal_sp;
	bool vforked; /* this may be the child of vfork() */
	struct preload_sampler sampler;
	struct preload_counter counter;
};

#ifdef PRELOAD_INJECTED
/* This thread.  Code that was injected has no variables of threads: what enters it saves its
 * caller's register, and sets it. */
register struct preload_thread *preload_self_at __asm__("r15");
#define preload_self (*preload_self_at)
#else
/* This thread. */
extern __thread struct preload_thread preload_self __attribute__((tls_model("initial-exec")));
#endif

/* What holds for all threads. */
extern struct preload_lanes {
	bool loader_seen; /* the loader was at work: modules may have come or gone */
	bool threads;	  /* more than one thread writes events */
} preload_lanes;

/* Find the stack of this thread, whose id is @tid; errno stays. */
void thread_ring_find_stack(uint32_t tid);

/* Make this thread's lane @level, which it has not; NULL: there is no ring. */
struct thread_ring *thread_ring_open(struct preload_header *h, uint32_t level);

/* Nothing is being written to @lane from now on, and what the next event could be compared with is
 * forgotten: the recorder may not know of it. */
void thread_ring_begin_anew(struct thread_ring *lane);

/* The first lane of this thread that no event is being written to when that at @sp comes; what was
 * left by a jump out of a handler is given up.  NULL: there is none. */
struct thread_ring *thread_ring_find(struct preload_header *h, uint64_t sp);

/* Is this the child of vfork(), in its parent's memory? */
bool thread_ring_is_child(void);

/* The loader was at work, or is, at @pc: have the recorder know of what it mapped. */
void thread_ring_check_loader(uint64_t pc);

/* An event has no ring (@lane NULL), or no room in it. */
void thread_ring_lost(struct preload_header *h, struct thread_ring *lane, enum preload_loss kind);

/* The memory of a process that seems to have none. */
struct preload_header *thread_ring_find_memory(enum preload_loss kind);

/* Nothing is moved past this by the compiler: a handler sees one side of it or both. */
static inline void thread_ring_fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The time by CLOCK_MONOTONIC, and above that of each event before. */
uint64_t thread_ring_time_in_steps(void);

/*
 * The time at which all had come that this thread loaded before, and nothing is stored that comes
 * after: so what orders two threads' events on one block orders their times.  Only where there is
 * another thread whose events those loads can have seen is there anything to wait for.
 */
static inline uint64_t thread_ring_time(void)
{
	if (UNLIKELY(preload_settings.clock != PRELOAD_CLOCK_TSC))
		return thread_ring_time_in_steps();
	if (__atomic_load_n(&preload_lanes.threads, __ATOMIC_ACQUIRE))
		_mm_lfence();
	return __rdtsc();
}

/* Is @sp on the stack that is known as this thread's? */
static inline bool thread_ring_on_stack(uint64_t sp)
{
	return sp >= preload_self.stack_lo && sp < preload_self.stack_hi;
}

/* Does this library still call at self->internal_sp, when an event comes at @sp?  If a jump has
 * left that, it is 0 from then on. */
bool thread_ring_is_internal(uint64_t sp);

/* The memory shared with the recorder, for an event at @sp that counts as @kind if it is lost.
 * NULL: nothing is recorded. */
static inline struct preload_header *thread_ring_memory(uint64_t sp, enum preload_loss kind)
{
	struct preload_header *h = preload_shared();

	if (UNLIKELY(preload_self.internal_sp) && thread_ring_is_internal(sp))
		return NULL;
	return LIKELY(h != NULL) ? h : thread_ring_find_memory(kind);
}

/*
 * Begin an event of a call from @pc with the stack at @sp.  NULL: there is nothing to do, or it
 * is counted as lost.  One store makes the lane busy: a handler that comes before it takes the same
 * lane, and has left it when it returns.
 */
static inline struct thread_ring *thread_ring_enter(struct preload_header *h, uint64_t pc,
						    uint64_t sp, enum preload_loss kind)
{
	const struct preload_thread *self = &preload_self;
	struct thread_ring *lane;

	if (UNLIKELY(preload_is_over(h) || (self->vforked && thread_ring_is_child())))
		return NULL;
	if (UNLIKELY(preload_lanes.loader_seen || preload_in_loader(pc)))
		thread_ring_check_loader(pc);
	lane = self->lanes[0];
	if (UNLIKELY(!lane || lane->entered_sp))
		lane = thread_ring_find(h, sp);
	if (UNLIKELY(!lane)) {
		thread_ring_lost(h, NULL, kind);
		return NULL;
	}
	lane->entered_head = lane->head;
	lane->entered_kind = (uint8_t)kind;
	thread_ring_fence();
	lane->entered_sp = sp;
	thread_ring_fence();
	return lane;
}

/* The event that was begun by thread_ring_enter() is written. */
static inline void thread_ring_leave(struct thread_ring *lane)
{
	thread_ring_fence();
	lane->entered_sp = 0;
	thread_ring_fence();
}

/* abandoned.c: an event of this thread comes at the stack pointer @sp: give up the events that were
 * left, and count as lost what they would have told.  Returns how many are still being written: to
 * the first of preload_self.lanes, each to one. */
uint32_t abandoned_settle(struct preload_header *h, uint64_t sp);

/* abandoned.c: was what this thread began at the stack pointer @at left by a jump, when an event
 * comes at @sp? */
bool abandoned_is_left(uint64_t at, uint64_t sp);

/* sample.c: which calls are recorded when not all are. */

/* Make room for what will be remembered. */
void preload_sample_begin(struct preload_header *h);

/* Is the block of @size bytes at @addr, allocated by @func for the call @at, to be recorded?  It is
 * counted as left out, or remembered. */
bool preload_sample_alloc(struct preload_header *h, enum event_func func, const void *addr,
			  size_t size, const struct caller *at);

/* Is *@type, of a block at @addr or @size bytes there, to be recorded?  *@unsure: it may be of a
 * block that was not; then *@type is a free. */
bool preload_sample_free(struct preload_header *h, enum event_type *type, const void *addr,
			 uint64_t size, uint64_t pc, bool *unsure);

/* Is a block of @size bytes in the sample? */
bool preload_sample_takes(const struct preload_header *h, uint64_t size);

/* count.c: the same two where threads are recorded or only counted, of what other filters let
 * through. */
bool preload_count_alloc(struct preload_header *h, enum event_func func, const void *addr,
			 size_t size, const struct caller *at);
bool preload_count_free(struct preload_header *h, enum event_type *type, uint64_t addr,
			uint64_t size, bool *unsure);

/* count.c: count with this thread what another filter leaves out. */
void preload_count_skip(struct preload_header *h, enum event_skip why, uint64_t bytes);

/* count.c: have ready what takes system calls. */
void preload_count_begin(struct preload_header *h);

/* count.c: this is the only thread of a child of fork(). */
void preload_count_child(void);

#endif
