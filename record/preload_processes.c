/* preload_processes.c - see preload_processes.h */
#include "record/preload_processes.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define MAX_HAPPENINGS 1024u
#define LINGER_NS      500000000ull /* a program begun by exec may take so long to come up */

enum kind { CAME, MAPPED, ENDED };

/* What counts from a time that the events have not reached yet. */
struct happening {
	enum kind kind;
	uint32_t slot;
	pid_t pid;
	uint64_t time;
	struct maps maps;
};

/* As the recorder knows it, whatever stands in the shared memory. */
struct process {
	pid_t pid; /* 0: nobody, or not believed yet */
	int pidfd;
	bool ended;
	uint32_t maps_answered, maps_changed;
};

struct preload_processes {
	struct preload_processes_opts opts;
	struct stat memory;
	struct process all[PRELOAD_MAX_PROCESSES];
	struct happening happenings[MAX_HAPPENINGS]; /* ascending */
	uint32_t nr_happenings;
	uint32_t nr_slots; /* that were ever in use */
	uint32_t nr_alive;
	uint64_t maps_failed, maps_unanswered;
	uint64_t last_end_ns; /* when the last one alive ended */
	bool over;
};

static struct preload_process *shared(const struct preload_processes *ps, uint32_t slot)
{
	return &ps->opts.memory->processes[slot];
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int preload_processes_new(struct preload_processes **out, const struct preload_processes_opts *opts)
{
	struct preload_processes *ps = calloc(1, sizeof(*ps));

	*out = NULL;
	if (!ps)
		return -ENOMEM;
	ps->opts = *opts;
	if (fstat(opts->fd, &ps->memory)) {
		free(ps);
		return -errno;
	}
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		ps->all[i].pidfd = -1;
	*out = ps;
	return 0;
}

static bool add(struct preload_processes *ps, uint32_t slot, pid_t pid)
{
	struct process *p = &ps->all[slot];
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return false;
	*p = (struct process){.pid = pid, .pidfd = fd};
	if (slot >= ps->nr_slots)
		ps->nr_slots = slot + 1;
	ps->nr_alive++;
	return true;
}

void preload_processes_start(struct preload_processes *ps, pid_t pid)
{
	add(ps, 0, pid);
}

static void let_go(struct preload_process *s)
{
	__atomic_store_n(&s->go, 1, __ATOMIC_RELEASE);
	wake(&s->go);
}

void preload_processes_go(struct preload_processes *ps)
{
	let_go(shared(ps, 0));
}

/* Room for what happened in @slot now; NULL: there is none. */
static struct happening *note(struct preload_processes *ps, enum kind kind, uint32_t slot)
{
	struct happening *h = &ps->happenings[ps->nr_happenings];

	if (ps->nr_happenings == MAX_HAPPENINGS)
		return NULL;
	*h = (struct happening){.kind = kind,
				.slot = slot,
				.pid = ps->all[slot].pid,
				.time = preload_clock_now(ps->opts.clock)};
	ps->nr_happenings++;
	return h;
}

/* The same with its mappings.  NULL: they could not be read. */
static struct happening *note_maps(struct preload_processes *ps, enum kind kind, uint32_t slot)
{
	struct happening *h = note(ps, kind, slot);

	if (!h || ps->opts.sink->read_maps(ps->opts.sink->ctx, h->pid, &h->maps))
		return h;
	maps_release(&h->maps);
	ps->nr_happenings--;
	ps->maps_failed++;
	return NULL;
}

/* Does the kernel say that @pid has mapped the memory? */
static bool has_memory(const struct preload_processes *ps, pid_t pid)
{
	struct maps maps = {0};
	bool found = false;

	if (!ps->opts.sink->read_all_maps(ps->opts.sink->ctx, pid, &maps))
		return false;
	for (size_t i = 0; i < maps.nr && !found; i++)
		found = maps.v[i].inode == ps->memory.st_ino &&
			maps.v[i].dev_major == major(ps->memory.st_dev) &&
			maps.v[i].dev_minor == minor(ps->memory.st_dev);
	maps_release(&maps);
	return found;
}

/* Is @pid in another slot, where a process waits for its end? */
static bool is_known(const struct preload_processes *ps, pid_t pid)
{
	for (uint32_t i = 0; i < ps->nr_slots; i++)
		if (ps->all[i].pid == pid)
			return true;
	return false;
}

static void forget(struct preload_processes *ps, uint32_t slot)
{
	if (ps->all[slot].pidfd >= 0)
		close(ps->all[slot].pidfd);
	ps->all[slot] = (struct process){.pidfd = -1};
}

/* Somebody has taken @slot: let him in if he is who he says he is.  One that is between two
 * programs has not mapped the memory yet, and is looked at again; one that has ended meanwhile
 * wrote nothing.
 */
static void meet(struct preload_processes *ps, uint32_t slot)
{
	struct preload_process *s = shared(ps, slot);
	pid_t pid = (pid_t)__atomic_load_n(&s->pid, __ATOMIC_ACQUIRE);

	if (pid <= 0 || is_known(ps, pid) || ps->nr_happenings == MAX_HAPPENINGS)
		return;
	if (!add(ps, slot, pid)) {
		memset(s, 0, sizeof(*s));
		return;
	}
	ps->all[slot].maps_answered = __atomic_load_n(&s->maps_asked, __ATOMIC_ACQUIRE);
	if (has_memory(ps, pid) && ps->opts.sink->met(ps->opts.sink->ctx, pid, (pid_t)s->parent) &&
	    note_maps(ps, CAME, slot)) {
		let_go(s);
		return;
	}
	ps->nr_alive--;
	forget(ps, slot);
}

/* Read the mappings of who asks for it.  They count from now, which is after all that was recorded
 * of code that is gone, and before all of code that is new. */
static void look_at_maps(struct preload_processes *ps, uint32_t slot)
{
	struct preload_process *s = shared(ps, slot);
	struct process *p = &ps->all[slot];
	uint32_t asked = __atomic_load_n(&s->maps_asked, __ATOMIC_ACQUIRE);
	uint32_t changed = __atomic_load_n(&s->maps_changed, __ATOMIC_ACQUIRE);

	if ((asked == p->maps_answered && changed == p->maps_changed) ||
	    ps->nr_happenings == MAX_HAPPENINGS)
		return;
	note_maps(ps, MAPPED, slot);
	p->maps_changed = changed;
	p->maps_answered = asked;
	__atomic_store_n(&s->maps_done, asked, __ATOMIC_RELEASE);
	wake(&s->maps_done);
}

/* Programs and children that were to begin, and have not come yet. */
static bool is_expecting(const struct preload_processes *ps)
{
	const struct preload_header *h = ps->opts.memory;

	return __atomic_load_n(&h->execs, __ATOMIC_ACQUIRE) + 1 +
		       __atomic_load_n(&h->forks, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&h->hello, __ATOMIC_ACQUIRE) +
		       __atomic_load_n(&h->children, __ATOMIC_ACQUIRE);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Note who has ended. */
static void look_for_ends(struct preload_processes *ps)
{
	struct pollfd fds[PRELOAD_MAX_PROCESSES];

	for (uint32_t i = 0; i < ps->nr_slots; i++)
		fds[i] = (struct pollfd){.fd = ps->all[i].ended ? -1 : ps->all[i].pidfd,
					 .events = POLLIN};
	if (poll(fds, ps->nr_slots, 0) <= 0)
		return;
	for (uint32_t i = 0; i < ps->nr_slots; i++) {
		if (!(fds[i].revents & POLLIN))
			continue;
		ps->all[i].ended = true;
		if (!--ps->nr_alive)
			ps->last_end_ns = now_ns();
	}
}

/* Tell of those who have ended; of the last ones not before it is known that nobody follows. */
static void tell_ends(struct preload_processes *ps)
{
	ps->over = !ps->nr_alive && (!ps->opts.follow ||
				     (!is_expecting(ps) || now_ns() > ps->last_end_ns + LINGER_NS));
	if (!ps->nr_alive && !ps->over)
		return;
	for (uint32_t i = 0; i < ps->nr_slots; i++) {
		if (!ps->all[i].ended || !note(ps, ENDED, i))
			continue;
		close(ps->all[i].pidfd);
		ps->all[i].pidfd = -1;
		ps->all[i].ended = false; /* it is told of now */
	}
}

void preload_processes_look(struct preload_processes *ps)
{
	look_for_ends(ps);
	for (uint32_t i = 1; ps->opts.follow && i < PRELOAD_MAX_PROCESSES; i++)
		if (!ps->all[i].pid && __atomic_load_n(&shared(ps, i)->pid, __ATOMIC_RELAXED))
			meet(ps, i);
	for (uint32_t i = 0; i < ps->nr_slots; i++)
		if (ps->all[i].pidfd >= 0)
			look_at_maps(ps, i);
	tell_ends(ps);
}

uint64_t preload_processes_next(const struct preload_processes *ps)
{
	return ps->nr_happenings ? ps->happenings[0].time : UINT64_MAX;
}

/* The slot is anybody's from now on. */
static void give_back(struct preload_processes *ps, uint32_t slot)
{
	struct preload_process *s = shared(ps, slot);

	ps->maps_unanswered += __atomic_exchange_n(&s->maps_unanswered, 0, __ATOMIC_RELAXED);
	forget(ps, slot);
	if (slot) /* the first stays the command's */
		memset(s, 0, sizeof(*s));
}

void preload_processes_apply(struct preload_processes *ps)
{
	const struct preload_sink *sink = ps->opts.sink;
	struct happening *h = &ps->happenings[0];
	uint64_t time_ns = preload_clock_ns(ps->opts.clock, h->time);

	if (h->kind == CAME)
		sink->came(sink->ctx, time_ns, h->pid, &h->maps);
	else if (h->kind == MAPPED)
		sink->mapped(sink->ctx, time_ns, h->pid, &h->maps);
	else
		sink->ended(sink->ctx, time_ns, h->pid);
	if (h->kind == ENDED)
		give_back(ps, h->slot);
	maps_release(&h->maps);
	memmove(h, h + 1, sizeof(*h) * --ps->nr_happenings);
}

bool preload_processes_over(const struct preload_processes *ps)
{
	return ps->over;
}

uint32_t preload_processes_in(const struct preload_processes *ps, uint32_t slot)
{
	return slot < PRELOAD_MAX_PROCESSES ? (uint32_t)ps->all[slot].pid : 0;
}

bool preload_processes_ended(const struct preload_processes *ps, uint32_t slot)
{
	return slot >= PRELOAD_MAX_PROCESSES || ps->all[slot].ended || ps->all[slot].pidfd < 0;
}

void preload_processes_wake(struct preload_processes *ps)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++) {
		wake(&shared(ps, i)->go);
		wake(&shared(ps, i)->maps_done);
	}
}

uint64_t preload_processes_lost(const struct preload_processes *ps)
{
	const struct preload_header *h = ps->opts.memory;
	uint32_t hellos = __atomic_load_n(&h->hello, __ATOMIC_ACQUIRE);
	uint32_t execs = __atomic_load_n(&h->execs, __ATOMIC_ACQUIRE) + 1;
	uint64_t lost = __atomic_load_n(&h->no_slot, __ATOMIC_RELAXED);

	return lost + (hellos < execs ? execs - hellos : 0);
}

uint64_t preload_processes_maps_lost(const struct preload_processes *ps)
{
	uint64_t lost = ps->maps_failed + ps->maps_unanswered;

	for (uint32_t i = 0; i < ps->nr_slots; i++)
		lost += __atomic_load_n(&shared(ps, i)->maps_unanswered, __ATOMIC_RELAXED);
	return lost;
}

void preload_processes_free(struct preload_processes *ps)
{
	if (!ps)
		return;
	while (ps->nr_happenings)
		maps_release(&ps->happenings[--ps->nr_happenings].maps);
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		if (ps->all[i].pidfd >= 0)
			close(ps->all[i].pidfd);
	free(ps);
}
