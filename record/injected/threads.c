/* threads.c - see threads.h */
#include "record/injected/threads.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define BEING_MADE 1u		 /* in the place of a control block's address */
#define MOST_STACK (64ull << 20) /* bytes of it that are looked at */
#define PAGE	   4096u
#define EACH	   1024u /* searches in vain: at one of so many a place is sought among the dead */

struct injected_thread injected_threads[INJECTED_NR_THREADS];
struct injected_events injected_events[INJECTED_NR_THREADS];

static uint32_t nr_in_vain;

static struct injected_thread *place(uint64_t tcb, uint32_t i)
{
	return &injected_threads[(injected_first_place(tcb, INJECTED_NR_THREADS) + i) %
				 INJECTED_NR_THREADS];
}

/* Make @t, which has the control block @was, that of @tcb and @tid.  Between the two a handler
 * finds nothing here, and makes another.  False: it is another's by now. */
static bool take(struct injected_thread *t, uint64_t was, uint64_t tcb, uint32_t tid)
{
	if (!__atomic_compare_exchange_n(&t->tcb, &was, BEING_MADE, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	memset(&injected_events[t - injected_threads], 0, sizeof(injected_events[0]));
	t->tid = tid;
	t->calling = 0;
	t->inside = 0;
	t->self = (uint64_t)&injected_events[t - injected_threads].self;
	__atomic_store_n(&t->tcb, tcb, __ATOMIC_RELEASE);
	return true;
}

static bool has_ended(const struct injected_thread *t)
{
	return t->tcb > BEING_MADE && !preload_no_calls() &&
	       preload_syscall(SYS_tgkill, preload_state.pid, t->tid, 0, 0) == -ESRCH;
}

/* All places of the thread @tcb are taken: take that of one that has ended. */
static struct injected_thread *take_from_the_dead(uint64_t tcb, uint32_t tid)
{
	if (__atomic_fetch_add(&nr_in_vain, 1, __ATOMIC_RELAXED) % EACH)
		return NULL;
	for (uint32_t i = 0; i < INJECTED_TRIES; i++) {
		struct injected_thread *t = place(tcb, i);
		uint64_t was = __atomic_load_n(&t->tcb, __ATOMIC_ACQUIRE);

		if (has_ended(t) && take(t, was, tcb, tid))
			return t;
	}
	return NULL;
}

struct injected_thread *injected_make_thread(uint64_t tcb, uint32_t tid)
{
	for (uint32_t i = 0; i < INJECTED_TRIES; i++) {
		struct injected_thread *t = place(tcb, i);
		uint64_t is = __atomic_load_n(&t->tcb, __ATOMIC_ACQUIRE);

		if (is == tcb && t->tid == tid)
			return t;
		/* Of a thread that has ended, whose memory this one has. */
		if ((!is || is == tcb) && take(t, is, tcb, tid))
			return t;
	}
	return take_from_the_dead(tcb, tid);
}

static struct injected_events *own_events(void)
{
	return (struct injected_events *)preload_self_at;
}

/* The main thread's stack is told by the recorder.  All other threads have their control block
 * right above their frames, whatever made them; how far the stack goes down is seen when they get
 * there. */
void thread_ring_find_stack(uint32_t tid)
{
	struct preload_thread *self = &preload_self;

	if (tid == preload_state.pid) {
		self->stack_lo = injected.main_stack.start;
		self->stack_hi = injected.main_stack.end;
		own_events()->stack_floor = self->stack_lo;
		return;
	}
	self->stack_hi = self->stack_lo = (uint64_t)__builtin_thread_pointer();
	own_events()->stack_floor = self->stack_hi > MOST_STACK ? self->stack_hi - MOST_STACK : 0;
}

/* Can the word at @addr be read?  The kernel reads it before it sees that the call makes no sense.
 */
static bool is_readable(uint64_t addr)
{
	return preload_syscall(SYS_rt_sigprocmask, -1, (long)addr, 0, sizeof(uint64_t)) == -EINVAL;
}

void injected_extend_stack(uint64_t sp)
{
	struct preload_thread *self = &preload_self;
	struct injected_events *own = own_events();

	if (!self->stack_hi)
		thread_ring_find_stack(injected_threads[own - injected_events].tid);
	if (sp < own->stack_floor || sp >= self->stack_lo || preload_no_calls())
		return;
	while (self->stack_lo > sp) {
		uint64_t page = (self->stack_lo - 1) & ~(uint64_t)(PAGE - 1);

		if (!is_readable(page)) {
			/* A guard page is there as long as the stack. */
			own->stack_floor = self->stack_lo;
			return;
		}
		self->stack_lo = page;
	}
}
