/* ask_recorder.c - system calls without the C library: the recorder is woken, and waited for */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "record/libpreload/preload.h"

#define MAPS_NS 1000000000ull /* the recorder may take as long at least to look at mappings */
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

/* Have the recorder look at the mappings, and wait for that, @most nanoseconds. */
static void ask_for_look(struct preload_header *h, struct preload_process *p, uint64_t most)
{
	uint32_t ticket = __atomic_add_fetch(&p->maps_asked, 1, __ATOMIC_ACQ_REL), done;
	uint64_t start;

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

void preload_maps_changed(bool wait)
{
	struct preload_header *h = preload_own.shared;
	struct preload_process *p = preload_state.process;
	uint64_t most = preload_settings.block_ns;

	if (!h || preload_is_over(h))
		return;
	if (wait && !preload_no_calls()) {
		ask_for_look(h, p, most < MAPS_NS ? MAPS_NS : most);
		return;
	}
	__atomic_fetch_add(&p->maps_changed, 1, __ATOMIC_RELEASE);
	/* By the time of the look it may be another mapping. */
	if (wait)
		__atomic_fetch_add(&p->maps_unanswered, 1, __ATOMIC_RELAXED);
}

void preload_code_ends(void)
{
	struct preload_header *h = preload_own.shared;
	struct preload_process *p = preload_state.process;

	if (h && p && !preload_is_over(h) && !preload_no_calls() &&
	    __atomic_load_n(&p->maps_changed, __ATOMIC_ACQUIRE) !=
		    __atomic_load_n(&p->code_found, __ATOMIC_ACQUIRE))
		ask_for_look(h, p, MAPS_NS);
}

void preload_tell_confined(struct preload_header *h, uint32_t how)
{
	__atomic_fetch_or(&h->confined, how, __ATOMIC_RELEASE);
}
