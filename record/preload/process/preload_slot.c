/* preload_slot.c - see preload_slot.h */
#include "record/preload/process/preload_slot.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPARE_FDS 16 /* for all that is opened for a moment */

void preload_slot_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void preload_slot_answer(struct preload_process *s, enum preload_answer answer)
{
	__atomic_store_n(&s->go, answer, __ATOMIC_RELEASE);
	preload_slot_wake(&s->go);
}

bool preload_slot_is_left(const struct preload_process *s, pid_t pid)
{
	uint32_t go = __atomic_load_n(&s->go, __ATOMIC_ACQUIRE);

	return go == PRELOAD_GONE || (go && kill(pid, 0) && errno == ESRCH);
}

void preload_slot_clear(struct preload_process *s)
{
	/* A process that takes it finds nothing of the one before. */
	memset((char *)s + sizeof(s->pid), 0, sizeof(*s) - sizeof(s->pid));
	__atomic_store_n(&s->pid, 0, __ATOMIC_RELEASE);
}

int preload_slot_open(pid_t pid, bool spare)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct rlimit limit;

	if (fd < 0)
		return -errno;
	if (!spare || getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd + SPARE_FDS < limit.rlim_cur)
		return fd;
	close(fd);
	return -EMFILE;
}
