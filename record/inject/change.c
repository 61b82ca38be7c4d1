/* change.c - see change.h */
#include "record/inject/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/inject/own_thread.h"
#include "record/ptrace/crew.h"
#include "record/ptrace/stop_all.h"

#define LIMIT_NS    UINT64_C(5000000000) /* of all tries */
#define APART_NS    1000000		 /* between two of them */
#define STACK	    (UINT64_C(1) << 23)	 /* bytes that are looked at, at most */
#define BATCH	    32			 /* threads */
#define BATCH_BYTES (BATCH * UINT64_C(16384))
#define NO_CALL	    UINT64_MAX /* of orig_rax: the thread is in no system call */
#define PAGE	    UINT64_C(4096)
#define SYSCALL	    2 /* bytes of the instruction, to which it may go back */

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

/* Threads whose registers one of the crew has read; their stacks are read together, for each call
 * of the kernel takes as long as a stack. */
struct batch {
	size_t nr, bytes;
	struct inject_thread threads[BATCH];
	struct iovec ours[BATCH], theirs[BATCH];
	uint8_t *memory; /* BATCH_BYTES, */
	uint8_t *large;	 /* and STACK bytes for a stack that is larger */
};

/* One of several. */
struct attempt {
	const struct inject_change_opts *opts;
	const struct inject_change *changes;
	size_t nr;
	struct batch *batches; /* one for each of the crew */
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

/* Is @t, its stack read, where it must not be? */
static bool is_in_the_way(const struct attempt *a, const struct inject_thread *t)
{
	const struct inject_change_opts *opts = a->opts;

	return is_within(a->changes, a->nr, t->regs.rip) ||
	       (t->regs.orig_rax != NO_CALL &&
		is_within(a->changes, a->nr, t->regs.rip - SYSCALL)) ||
	       has_kept(a->changes, a->nr, t) || (opts->is_there && opts->is_there(opts->ctx, t));
}

static void set_words(struct inject_thread *t, const void *words, ssize_t bytes)
{
	t->words = words;
	t->nr = bytes > 0 ? (size_t)bytes / sizeof(uint64_t) : 0;
}

/* Returns 0, or -EAGAIN: one of the threads of @b is in the way. */
static int judge(const struct attempt *a, struct batch *b)
{
	/* of the process, as each of its threads says: the main thread may have ended */
	ssize_t got =
		b->nr ? process_vm_readv(b->threads[0].tid, b->ours, b->nr, b->theirs, b->nr, 0)
		      : 0;
	int err = 0;

	for (size_t i = 0; i < b->nr && !err; i++) {
		const struct iovec *ours = &b->ours[i];
		ssize_t bytes = (ssize_t)ours->iov_len;

		if (got != (ssize_t)b->bytes)
			bytes = pread(a->opts->mem, ours->iov_base, ours->iov_len,
				      (off_t)(uintptr_t)b->theirs[i].iov_base);
		set_words(&b->threads[i], ours->iov_base, bytes);
		err = is_in_the_way(a, &b->threads[i]) ? -EAGAIN : 0;
	}
	b->nr = b->bytes = 0;
	return err;
}

/* Returns 0, -EAGAIN: a thread is there, or -errno. */
static int look(void *ctx, const struct stop_all *s, size_t i, unsigned int who)
{
	const struct attempt *a = ctx;
	struct batch *b = &a->batches[who];
	struct inject_thread *t = &b->threads[b->nr];
	uint64_t sp, bytes;
	int err;

	if (i == s->nr)
		return judge(a, b);
	err = stop_all_regs(s, i, &t->tid, &t->regs);
	if (err)
		return err == -ESRCH ? 0 : err; /* it has ended */
	sp = t->regs.rsp & ~UINT64_C(7);
	bytes = stack_end(a->opts->maps, sp, t->regs.fs_base) - sp;
	if (bytes > BATCH_BYTES / BATCH) {
		set_words(t, b->large,
			  pread(a->opts->mem, b->large, bytes < STACK ? bytes : STACK, (off_t)sp));
		return is_in_the_way(a, t) ? -EAGAIN : 0;
	}
	b->ours[b->nr] = (struct iovec){b->memory + b->bytes, bytes};
	b->theirs[b->nr++] = (struct iovec){(void *)(uintptr_t)sp, bytes};
	b->bytes += bytes;
	return b->nr < BATCH ? 0 : judge(a, b);
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

/* Are all bytes to be changed as they are known? */
static bool are_as_before(const struct stop_all *s, int mem, const struct inject_change *changes,
			  size_t nr)
{
	uint8_t now[INJECT_CHANGES][INJECT_CHANGE];
	struct iovec ours = {now, nr * INJECT_CHANGE}, theirs[INJECT_CHANGES];
	bool same = nr <= INJECT_CHANGES, all;

	for (size_t i = 0; i < nr && same; i++)
		theirs[i] = (struct iovec){(void *)(uintptr_t)changes[i].at, INJECT_CHANGE};
	/* one call takes as long as one of the reads */
	all = same &&
	      process_vm_readv(find_stopped(s), &ours, 1, theirs, nr, 0) == (ssize_t)ours.iov_len;
	for (size_t i = 0; i < nr && same; i++)
		same = (all ||
			pread(mem, now[i], INJECT_CHANGE, (off_t)changes[i].at) == INJECT_CHANGE) &&
		       !memcmp(now[i], changes[i].before, INJECT_CHANGE);
	return same;
}

static int write_all(const struct stop_all *s, int mem, const struct inject_change *changes,
		     size_t nr)
{
	if (nr && !are_as_before(s, mem, changes, nr))
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
	int err;

	/* a try that was given up has left some in it */
	for (size_t i = 0; i < CREW_MOST; i++)
		a->batches[i].nr = a->batches[i].bytes = 0;
	err = stop_all_begin(&s, opts->pid, look, a);

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
	struct batch batches[CREW_MOST] = {0};
	struct attempt a = {
		.opts = opts, .changes = changes, .nr = nr, .batches = batches, .cost = cost};
	uint8_t *memory = malloc(CREW_MOST * (STACK + BATCH_BYTES));
	int err = memory ? -EAGAIN : -ENOMEM;

	for (size_t i = 0; memory && i < CREW_MOST; i++) {
		batches[i].large = memory + i * (STACK + BATCH_BYTES);
		batches[i].memory = batches[i].large + STACK;
		/* written to once, it is there when threads stand */
		memset(batches[i].memory, 0, BATCH_BYTES);
	}
	/* it may wait in the kernel for what cannot be interrupted, or for a processor */
	while (err == -EAGAIN || err == -ETIMEDOUT) {
		err = inject_in_thread(try_once, &a, opts->pid);
		if (err != -EAGAIN && err != -ETIMEDOUT)
			break;
		if (clock_now_ns() > until_ns)
			err = err == -EAGAIN ? -EBUSY : -ETIME;
		else
			nanosleep(&(struct timespec){.tv_nsec = APART_NS}, NULL);
	}
	free(memory);
	return err;
}
