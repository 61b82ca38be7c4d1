/* process_table.c - numbers, and descriptors that report an end */
#include "record/preload/process/process_table.h"

#include <poll.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/preload/process/preload_slot.h"

void process_table_init(struct process_table *t)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		t->all[i].pidfd = -1;
}

int process_table_add(struct process_table *t, uint32_t slot, pid_t pid)
{
	struct preload_seat *p = &t->all[slot];
	/* the command comes before what else is opened */
	int fd = preload_slot_open(pid, slot != 0);

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
