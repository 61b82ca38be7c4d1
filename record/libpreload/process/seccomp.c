/* seccomp.c - a process that forbids itself what this library needs
 *
 * A seccomp filter may kill for any system call, so after one the library makes none: threads that
 * have a ring go on, what would need a call is lost, and counted.  Where the time stamp counter is
 * forbidden, as seccomp's strict mode does, events have no time: all of them are lost, and counted.
 * Both hold for the whole process, because threads inherit them; a child of fork() and the next
 * program, too.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "record/libpreload/event/thread_ring.h"
#include "record/libpreload/guard/guard.h"

bool preload_has_clock(void)
{
	int how = PR_TSC_ENABLE;

	preload_syscall(SYS_prctl, PR_GET_TSC, (long)&how, 0, 0);
	return how == PR_TSC_ENABLE;
}

/* What takes system calls is done now. */
static void prepare(void)
{
	struct preload_header *h =
		thread_ring_memory((uint64_t)__builtin_frame_address(0), PRELOAD_LOST_ALLOC);

	if (h && !preload_self.lanes[0] && !preload_is_over(h))
		thread_ring_open(h, 0);
	if (h)
		preload_sample_begin(h);
}

/* Nothing of this process is recorded any more. */
static void stop(void)
{
	struct preload_header *h = preload_shared();

	if (!h)
		return;
	preload_own.unclocked = h;
	__atomic_store_n(&preload_own.shared, NULL, __ATOMIC_RELEASE);
}

/* What this process had before, should the kernel refuse. */
struct before {
	uint32_t confined;
	struct preload_header *shared;
};

static struct before confine(uint32_t how)
{
	struct before b;

	if (how == PRELOAD_NO_CALLS && !preload_state.confined)
		prepare();
	if (how & PRELOAD_NO_CALLS && !preload_no_calls())
		guard_signals(false); /* returning from a handler is a call */
	b = (struct before){.confined = preload_state.confined, .shared = preload_shared()};
	/* Another clock may be a system call itself. */
	if (how & PRELOAD_NO_CALLS && preload_settings.clock != PRELOAD_CLOCK_TSC)
		how |= PRELOAD_NO_CLOCK;
	preload_state.confined |= how;
	if (how & PRELOAD_NO_CLOCK)
		stop();
	return b;
}

static void take_back(const struct before *b)
{
	preload_state.confined = b->confined;
	if (!preload_no_calls())
		guard_signals(true);
	if (!preload_own.unclocked || !b->shared)
		return;
	__atomic_store_n(&preload_own.shared, b->shared, __ATOMIC_RELEASE);
	preload_own.unclocked = NULL;
}

/* What a call forbids that gives @mode to PR_SET_SECCOMP. */
static uint32_t seccomp_forbids(unsigned long mode)
{
	return mode == SECCOMP_MODE_STRICT   ? PRELOAD_NO_CALLS | PRELOAD_NO_CLOCK
	       : mode == SECCOMP_MODE_FILTER ? PRELOAD_NO_CALLS
					     : 0;
}

/* What system call @nr forbids with these arguments, if it is done. */
static uint32_t forbids(long nr, unsigned long a, unsigned long b)
{
	if (nr == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT)
		return seccomp_forbids(SECCOMP_MODE_STRICT);
	if (nr == SYS_seccomp && a == SECCOMP_SET_MODE_FILTER)
		return seccomp_forbids(SECCOMP_MODE_FILTER);
	if (nr == SYS_prctl && (int)a == PR_SET_SECCOMP)
		return seccomp_forbids(b);
	return nr == SYS_prctl && (int)a == PR_SET_TSC && b == PR_TSC_SIGSEGV ? PRELOAD_NO_CLOCK
									      : 0;
}

/* syscall() comes here, by syscall.S, of the two calls that matter. */
long wrap_syscall(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
		  unsigned long e)
{
	uint32_t how = forbids(nr, a, b);
	struct preload_header *h;
	struct before before;
	long result;

	/* A child of vfork() is another process in this one's memory. */
	if (!how || !preload_ready() || !preload_is_parent())
		return preload_find_syscall()(nr, a, b, c, d, e);
	before = confine(how);
	result = preload_find_syscall()(nr, a, b, c, d, e);
	h = before.shared;
	if (result < 0)
		take_back(&before);
	else if (h)
		preload_tell_confined(h, preload_state.confined);
	return result;
}

/* More arguments than a caller gives are in no one's way. */
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return (int)wrap_syscall(SYS_prctl, (unsigned long)option, a, b, c, d);
}

/* As syscall() does, while the C library's is being looked up. */
static long call_kernel(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result >= 0 || result < -4095)
		return result;
	errno = (int)-result;
	return -1;
}

long (*preload_find_syscall(void))(long, ...)
{
	preload_ready();
	return preload_real.syscall ? preload_real.syscall : (long (*)(long, ...))call_kernel;
}
