/* change.c - see change.h */
#include "record/inject/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/inject/own_thread.h"
#include "record/ptrace/crew.h"
#include "record/ptrace/stop_all.h"

#define LIMIT_NS UINT64_C(5000000000) /* of all tries */
#define APART_NS 1000000	      /* between two of them */
#define STACK	 (UINT64_C(1) << 23)  /* bytes that are looked at, at most */
#define NO_CALL	 UINT64_MAX	      /* of orig_rax: the thread is in no system call */
#define PAGE	 UINT64_C(4096)
#define SYSCALL	 2 /* bytes of the instruction, to which it may go back */

void inject_cost_add(struct inject_cost *cost, size_t threads, uint64_t ns)
{
	cost->threads = (unsigned int)threads;
	cost->times++;
	if (ns > cost->longest_ns)
		cost->longest_ns = ns;
}

void inject_cost_join(struct inject_cost *cost, const struct inject_cost *later)
{
	if (later->threads)
		cost->threads = later->threads;
	cost->times += later->times;
	if (later->longest_ns > cost->longest_ns)
		cost->longest_ns = later->longest_ns;
	if (later->held_ns > cost->held_ns)
		cost->held_ns = later->held_ns;
}

static bool is_within(const struct inject_change *changes, size_t nr, uint64_t pc)
{
	for (size_t i = 0; i < nr; i++)
		if (pc > changes[i].at && pc < changes[i].at + INJECT_CHANGE)
			return true;
	return false;
}

/* Is a word of the stack, the pc that a signal frame has kept, within the bytes? No call returns
 * there: none stands in them. */
static bool has_kept(const struct inject_change *changes, size_t nr, const struct inject_thread *t)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < nr; i++) {
		lo = changes[i].at < lo ? changes[i].at : lo;
		hi = changes[i].at > hi ? changes[i].at : hi;
	}
	for (size_t i = 0; i < t->nr; i++)
		if (t->words[i] - lo < hi + INJECT_CHANGE - lo &&
		    is_within(changes, nr, t->words[i]))
			return true;
	return false;
}

/* One of several. */
struct attempt {
	const struct inject_change_opts *opts;
	const struct inject_change *changes;
	size_t nr;
	uint64_t *buffers[CREW_MOST]; /* STACK bytes, for each of the crew */
	struct inject_cost *cost;
};

/* Where the stack at @sp ends at the latest.  A thread's control block lies above all frames, in
 * the same mapping; of a mapping that is new since nothing is known. */
static uint64_t stack_end(const struct maps *maps, uint64_t sp, uint64_t tcb)
{
	const struct mlk_mapping *m = maps_find(maps, sp);

	if (m && tcb > sp && tcb < m->end)
		return tcb;
	return m ? m->end : sp + STACK;
}

/* Read the stack of @t into @buffer. */
static void read_stack(const struct attempt *a, uint64_t *buffer, struct inject_thread *t)
{
	const uint64_t sp = t->regs.rsp & ~UINT64_C(7);
	const uint64_t most = stack_end(a->opts->maps, sp, t->regs.fs_base) - sp;
	ssize_t got = pread(a->opts->mem, buffer, most < STACK ? most : STACK, (off_t)sp);

	t->words = buffer;
	t->nr = got > 0 ? (size_t)got / sizeof(uint64_t) : 0;
}

/* Returns 0, -EAGAIN: the thread is there, or -errno. */
static int look(void *ctx, const struct stop_all *s, size_t i, unsigned int who)
{
	const struct attempt *a = ctx;
	const struct inject_change_opts *opts = a->opts;
	struct inject_thread t = {0};
	int err = stop_all_regs(s, i, &t.tid, &t.regs);

	if (err)
		return err == -ESRCH ? 0 : err; /* it has ended */
	read_stack(a, a->buffers[who], &t);
	if (is_within(a->changes, a->nr, t.regs.rip) ||
	    (t.regs.orig_rax != NO_CALL && is_within(a->changes, a->nr, t.regs.rip - SYSCALL)) ||
	    has_kept(a->changes, a->nr, &t) || (opts->is_there && opts->is_there(opts->ctx, &t)))
		return -EAGAIN;
	return 0;
}

/* A thread that the caller has stopped; 0: all of those have ended. */
static pid_t find_stopped(const struct stop_all *s)
{
	struct user_regs_struct regs;
	pid_t tid;

	for (size_t i = 0; i < s->nr; i++)
		if (!stop_all_regs(s, i, &tid, &regs))
			return tid;
	return 0;
}

/* Write @bytes to @at by the word around them that is on one page. */
static int poke(pid_t tid, uint64_t at, const uint8_t bytes[INJECT_CHANGE])
{
	const uint64_t last = (at | (PAGE - 1)) + 1 - sizeof(long), word_at = at < last ? at : last;
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, (void *)word_at, NULL);
	if (errno)
		return -errno;
	memcpy((uint8_t *)&word + (at - word_at), bytes, INJECT_CHANGE);
	return ptrace(PTRACE_POKETEXT, tid, (void *)word_at, (void *)word) ? -errno : 0;
}

/* By the file it is a single call for all bytes; but that may write to no code where Linux 6.12 was
 * started with proc_mem.force_override=never. */
static int write_bytes(const struct stop_all *s, int mem, uint64_t at,
		       const uint8_t bytes[INJECT_CHANGE])
{
	if (pwrite(mem, bytes, INJECT_CHANGE, (off_t)at) == INJECT_CHANGE)
		return 0;
	return poke(find_stopped(s), at, bytes);
}

static int write_all(const struct stop_all *s, int mem, const struct inject_change *changes,
		     size_t nr)
{
	uint8_t now[INJECT_CHANGE];

	for (size_t i = 0; i < nr; i++)
		if (pread(mem, now, sizeof(now), (off_t)changes[i].at) != sizeof(now) ||
		    memcmp(now, changes[i].before, sizeof(now)) != 0)
			return -EILSEQ;
	for (size_t i = 0; i < nr; i++) {
		int err = write_bytes(s, mem, changes[i].at, changes[i].after);

		if (!err)
			continue;
		while (i-- > 0) /* it was written once: so it can be again */
			(void)!write_bytes(s, mem, changes[i].at, changes[i].before);
		return err;
	}
	return 0;
}

/* In a thread of its own.  Returns 0, -EAGAIN: a thread is there, -ETIMEDOUT: one did not stop, or
 * -errno. */
static int try_once(void *arg)
{
	struct attempt *a = arg;
	const struct inject_change_opts *opts = a->opts;
	struct stop_all s = {.crew = stop_all_crew(opts->pid)};
	struct crew *crew = s.crew;
	size_t nr;
	int err = stop_all_begin(&s, opts->pid, look, a);

	if (!err && opts->is_there && opts->is_there(opts->ctx, NULL))
		err = -EAGAIN;
	if (!err)
		err = write_all(&s, opts->mem, a->changes, a->nr);
	nr = s.stopped;
	inject_cost_add(a->cost, nr, stop_all_end(&s));
	crew_free(crew);
	return err;
}

int inject_change(const struct inject_change_opts *opts, const struct inject_change *changes,
		  size_t nr, struct inject_cost *cost)
{
	const uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	struct attempt a = {.opts = opts, .changes = changes, .nr = nr, .cost = cost};
	uint64_t *buffers = malloc(CREW_MOST * STACK);
	int err = buffers ? -EAGAIN : -ENOMEM;

	for (size_t i = 0; buffers && i < CREW_MOST; i++)
		a.buffers[i] = buffers + i * (STACK / sizeof(*buffers));

	/* it may wait in the kernel for what cannot be interrupted, or for a processor */
	while (err == -EAGAIN || err == -ETIMEDOUT) {
		err = inject_in_thread(try_once, &a);
		if (err != -EAGAIN && err != -ETIMEDOUT)
			break;
		if (clock_now_ns() > until_ns)
			err = err == -EAGAIN ? -EBUSY : -ETIME;
		else
			nanosleep(&(struct timespec){.tv_nsec = APART_NS}, NULL);
	}
	free(buffers);
	return err;
}
