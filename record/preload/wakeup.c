/* wakeup.c - see wakeup.h */
#include "record/preload/wakeup.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/preload/process/process_table.h"
#include "record/privilege/privileges.h"

#define LOOK_NS 1000000u /* between checks of what does not wake it */

void wakeup_wait(uint32_t *word, uint32_t seen, const struct timespec *most)
{
	syscall(SYS_futex, word, FUTEX_WAIT, seen, most, NULL, 0);
}

/*
 * Turn wakes of the target into an eventfd's, until the end.  The list tells the kernel which word
 * to mark when this thread is gone, even by SIGKILL: its only entry is in our own memory, because a
 * hostile target could lead the kernel anywhere with one in the shared memory.
 */
static void *sleep_for_target(void *arg)
{
	struct wakeup *s = arg;
	struct preload_header *h = s->memory;
	struct robust_list entry, *first = &entry;
	struct robust_list_head head = {.list = {first}};
	uint64_t one = 1;

	sandbox_enter(-1);
	privileges_keep_in_thread(0); /* sleeping takes none */
	entry.next = &head.list;
	head.futex_offset = (long)((uintptr_t)&h->alive - (uintptr_t)&entry);
	if (!syscall(SYS_set_robust_list, &head, sizeof(head)))
		__atomic_store_n(&h->alive, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->ended, __ATOMIC_ACQUIRE)) {
		uint32_t seen = __atomic_load_n(&h->wake, __ATOMIC_ACQUIRE);
		struct timespec wait = {.tv_nsec = 50000000};

		if (write(s->fd, &one, sizeof(one)) != (ssize_t)sizeof(one) && errno != EAGAIN)
			break;
		/* A process that may make no system call wakes nothing. */
		if (__atomic_load_n(&h->confined, __ATOMIC_RELAXED))
			wait.tv_nsec = LOOK_NS;
		wakeup_wait(&h->wake, seen, &wait);
	}
	return NULL;
}

bool wakeup_start(struct wakeup *s, struct preload_header *memory, int fd)
{
	sigset_t all, before;

	s->memory = memory;
	s->fd = fd;
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->sleeps = !pthread_create(&s->thread, NULL, sleep_for_target, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return s->sleeps;
}

void wakeup_end(struct wakeup *s)
{
	if (!s->sleeps)
		return;
	__atomic_store_n(&s->ended, true, __ATOMIC_RELEASE);
	preload_slot_wake(&s->memory->wake);
	pthread_join(s->thread, NULL);
	s->sleeps = false;
}
