/* process_table.c - numbers, and descriptors that report an end */
#include "record/preload/process/process_table.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/base/proc.h"

void process_table_init(struct process_table *t)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		t->all[i].pidfd = -1;
}

#define SPARE_FDS 16 /* for all that is opened for a moment */

/* Open a descriptor of process @pid, to be closed.  Returns it or -errno: with @spare -EMFILE
 * before the last descriptors are taken. */
static int open_pidfd(pid_t pid, bool spare)
{
	int fd = proc_pidfd(pid);
	struct rlimit limit;

	if (fd < 0)
		return -errno;
	if (!spare || getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd + SPARE_FDS < limit.rlim_cur)
		return fd;
	close(fd);
	return -EMFILE;
}

int process_table_add(struct process_table *t, uint32_t slot, pid_t pid)
{
	struct preload_seat *p = &t->all[slot];
	/* the command comes before what else is opened */
	int fd = open_pidfd(pid, slot != 0);

	if (fd < 0)
		return fd;
	*p = (struct preload_seat){.pid = pid, .pidfd = fd};
	if (slot >= t->nr_slots)
		t->nr_slots = slot + 1;
	t->nr_alive++;
	return 0;
}

void process_table_forget(struct process_table *t, uint32_t slot)
{
	if (t->all[slot].pidfd >= 0) {
		t->nr_alive -= !t->all[slot].ended;
		close(t->all[slot].pidfd);
	}
	t->all[slot] = (struct preload_seat){.pidfd = -1};
}

bool process_table_has(const struct process_table *t, pid_t pid)
{
	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (t->all[i].pid == pid)
			return true;
	return false;
}

void process_table_poll(struct process_table *t)
{
	struct pollfd fds[PRELOAD_MAX_PROCESSES];
	struct preload_seat *whose[PRELOAD_MAX_PROCESSES];
	uint32_t nr = 0;

	/* poll(2) takes no more than can be open, even if they are not */
	for (uint32_t i = 0; i < t->nr_slots; i++) {
		if (t->all[i].ended || t->all[i].pidfd < 0)
			continue;
		whose[nr] = &t->all[i];
		fds[nr++] = (struct pollfd){.fd = t->all[i].pidfd, .events = POLLIN};
	}
	if (poll(fds, nr, 0) <= 0)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		if (!(fds[i].revents & POLLIN))
			continue;
		whose[i]->ended = true;
		if (!--t->nr_alive)
			t->last_end_ns = clock_now_ns();
	}
}

void process_table_close(struct process_table *t, uint32_t slot)
{
	close(t->all[slot].pidfd);
	t->all[slot].pidfd = -1;
	t->all[slot].ended = false; /* it is reported now */
}

void process_table_release(struct process_table *t)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		if (t->all[i].pidfd >= 0)
			close(t->all[i].pidfd);
}

bool exec_detect_poll(struct exec_detect *w, const struct preload_process *s, uint64_t start)
{
	uint32_t program = __atomic_load_n(&s->program, __ATOMIC_ACQUIRE);
	uint32_t execs = __atomic_load_n(&s->execs, __ATOMIC_ACQUIRE);
	bool lost;

	if (!start)
		return false;
	if (!w->start || program != w->program) {
		*w = (struct exec_detect){.start = start, .program = program, .execs = execs};
		return false;
	}
	if (execs != w->execs)
		w->expected = (int32_t)(execs - w->execs) > 0;
	w->execs = execs;
	if (start == w->start)
		return false;
	/* In one that was started otherwise the library may just be starting. */
	if (!w->expected && !w->strange) {
		w->strange = true;
		return false;
	}
	/* What the library reported is counted already if it does not start there. */
	lost = !w->expected;
	w->expected = w->strange = false;
	w->start = start;
	return lost;
}

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
