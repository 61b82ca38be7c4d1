/* ask_recorder.c - system calls without the C library: the recorder is woken, and waited for */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "record/libpreload/preload.h"

#define MAPS_NS 1000000000ull /* the recorder may take as long at least to look at mappings */
#define CODE_NS 10000000ull   /* it looks for generated code no sooner after the last time */
#define PAUSES	1000	      /* in the place of sleep */

long preload_syscall(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

void preload_wake(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	/* Without a wake the recorder looks by itself. */
	if (!preload_no_calls())
		preload_syscall(SYS_futex, (long)word, FUTEX_WAKE, 1, 0);
}

void preload_wake_recorder(struct preload_header *h)
{
	if (__atomic_load_n(&h->asleep, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&h->asleep, 0, __ATOMIC_ACQ_REL))
		preload_wake(&h->wake);
}

void preload_sleep(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	if (!preload_no_calls())
		preload_syscall(SYS_futex, (long)word, FUTEX_WAIT, (long)value, (long)&ts);
	else
		for (uint32_t i = 0; i < PAUSES; i++)
			__builtin_ia32_pause();
}

/* Have the recorder look for generated code before the process can end.  It comes in many parts. */
static void wake_for_code(struct preload_header *h)
{
	static uint64_t last;
	uint64_t now = preload_monotonic_ns();

	if (now - __atomic_load_n(&last, __ATOMIC_RELAXED) < CODE_NS)
		return;
	__atomic_store_n(&last, now, __ATOMIC_RELAXED);
	preload_wake_recorder(h);
}

void preload_maps_changed(bool wait)
{
	struct preload_header *h = preload_own.shared;
	struct preload_process *p = preload_state.process;
	uint64_t start, most = preload_settings.block_ns;
	uint32_t ticket, done;

	if (!h || preload_is_over(h))
		return;
	if (!wait || preload_no_calls()) {
		__atomic_fetch_add(&p->maps_changed, 1, __ATOMIC_RELEASE);
		/* By the time of the look it may be another mapping. */
		if (wait)
			__atomic_fetch_add(&p->maps_unanswered, 1, __ATOMIC_RELAXED);
		else
			wake_for_code(h);
		return;
	}
	if (most < MAPS_NS)
		most = MAPS_NS;
	ticket = __atomic_add_fetch(&p->maps_asked, 1, __ATOMIC_ACQ_REL);
	preload_wake(&h->wake);
	start = preload_monotonic_ns();
	while (done = __atomic_load_n(&p->maps_done, __ATOMIC_ACQUIRE),
	       (int32_t)(done - ticket) < 0) {
		preload_sleep(&p->maps_done, done, 10000000);
		if (preload_is_over(h))
			return;
		if (preload_monotonic_ns() - start < most)
			continue;
		__atomic_fetch_add(&p->maps_unanswered, 1, __ATOMIC_RELAXED);
		return;
	}
}

void preload_tell_confined(struct preload_header *h, uint32_t how)
{
	__atomic_fetch_or(&h->confined, how, __ATOMIC_RELEASE);
}
