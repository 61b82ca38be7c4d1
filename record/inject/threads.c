/* threads.c - see threads.h */
#include "record/inject/threads.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "array.h"
#include "record/base/living.h"
#include "record/base/own_number.h"
#include "record/base/proc.h"
#include "record/inject/inject.h"
#include "record/inject/own_thread.h"
#include "record/inject/remote/remote.h"
#include "record/ptrace/crew.h"
#include "record/ptrace/stop_all.h"
#include "record/target/target.h"

#define BLOCK	   4096			/* bytes of a thread's control block in which its id is */
#define TRIES	   20			/* of a quarter of a second, to stop all threads */
#define CODE_64	   0x33			/* the selector of 64-bit code */
#define FLAGS_SET  0x2			/* of eflags: always */
#define FLAGS_END  (UINT64_C(1) << 22)	/* of eflags: beyond them */
#define MAIN_STACK (UINT64_C(64) << 20) /* nothing else is mapped so near below its top */

/* Bit i: the id may be at the offset 4 * i. */
struct places {
	uint64_t bits[BLOCK / 4 / 64];
};

static void narrow(struct places *p, const uint32_t *block, size_t nr, uint32_t tid)
{
	for (size_t i = 0; i < BLOCK / 4; i++)
		if (i >= nr || block[i] != tid)
			p->bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* The loader's code, where that is a file of its own; musl's is the C library. */
static struct preload_range loader_of(const struct target *t, const struct maps *maps)
{
	const struct mlk_mapping *at = maps_find(maps, target_auxv(t, AT_BASE));

	for (size_t i = 0; at && !target_is_libc(at->path) && i < maps->nr; i++)
		if (maps_same_file(&maps->v[i], at) && maps->v[i].perms & MLK_PERM_X)
			return (struct preload_range){maps->v[i].start, maps->v[i].end};
	return (struct preload_range){0, 0};
}

/* Where the main thread's frames are: below what the kernel had put there for its start. */
static struct preload_range main_stack(pid_t pid)
{
	char text[1024], *at;
	uint64_t top = 0, room = MAIN_STACK;
	struct rlimit limit;

	proc_read(text, sizeof(text), "/proc/%d/stat", (int)pid);
	at = strrchr(text, ')'); /* behind it is field 3; startstack is field 28 */
	for (int field = 2; at && field < 28; field++)
		at = strchr(at + 1, ' ');
	if (at)
		top = strtoull(at, NULL, 10);
	if (!prlimit(pid, RLIMIT_STACK, NULL, &limit) && limit.rlim_cur < room)
		room = limit.rlim_cur;
	return (struct preload_range){top > room ? top - room : top, top};
}

/* A thread that stood, and its control block. */
struct seen {
	pid_t tid;
	uint64_t tcb;
};

/* What one look at all threads has. */
struct looking {
	pid_t pid;
	int mem;
	pthread_mutex_t lock; /* of what follows, while they stand */
	struct seen *v;
	size_t nr, room;
	const char *why; /* they cannot be recorded; NULL: they can */
	struct places places;
	struct inject_cost *cost;
};

static int see(void *ctx, const struct stop_all *s, size_t i, unsigned int who)
{
	struct looking *l = ctx;
	struct user_regs_struct regs;
	int err = 0;
	pid_t tid;

	(void)who;
	if (i == s->nr || stop_all_regs(s, i, &tid, &regs))
		return 0;
	pthread_mutex_lock(&l->lock);
	if (regs.cs != CODE_64)
		l->why = "runs code of 32 bits";
	if (grow_array(&l->v, l->nr, &l->room, sizeof(*l->v)))
		err = -ENOMEM;
	else
		l->v[l->nr++] = (struct seen){tid, regs.fs_base};
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* Look at the control block of a thread, which runs again: what is looked for stays as it is.
 * Returns false if it has ended meanwhile, or is about to. */
static bool look_at(struct looking *l, const struct seen *t, bool own_numbers)
{
	const pid_t tid = own_numbers ? own_number_of(l->pid, t->tid) : t->tid;
	uint32_t block[BLOCK / 4];
	uint64_t self = 0;
	ssize_t got = pread(l->mem, block, sizeof(block), (off_t)t->tcb);

	if (!living_goes_on(t->tid))
		return false;
	if (got >= (ssize_t)sizeof(self))
		memcpy(&self, block, sizeof(self));
	if (!t->tcb || self != t->tcb) {
		l->why = "has a thread without a control block of the C library's";
		return true;
	}
	narrow(&l->places, block, (size_t)got / sizeof(block[0]), (uint32_t)tid);
	return true;
}

/* In a thread of its own.  Returns 0 or -errno. */
static int see_all(void *arg)
{
	struct looking *l = arg;
	struct stop_all s = {.crew = stop_all_crew(l->pid)};
	struct crew *crew = s.crew;
	size_t nr;
	int err;

	l->nr = 0;
	l->why = NULL;
	err = stop_all_begin(&s, l->pid, see, l);
	nr = s.stopped;
	inject_cost_add(l->cost, nr, stop_all_end(&s));
	crew_free(crew);
	return err;
}

/* Returns 0; -ETIMEDOUT; -EAGAIN: all threads that stood have ended; or -errno. */
static int look_once(struct looking *l)
{
	const bool own_numbers = own_number_differs(l->pid);
	int err = inject_in_thread(see_all, l, l->pid);
	size_t nr = 0;

	memset(&l->places, 0xff, sizeof(l->places));
	for (size_t i = 0; i < l->nr && !err && !l->why; i++)
		nr += look_at(l, &l->v[i], own_numbers);
	return err || nr || l->why ? err : -EAGAIN;
}

int inject_threads_describe(pid_t pid, int mem, const struct maps *maps, struct injected *to,
			    struct inject_cost *cost, char *why)
{
	const struct target t = {.pid = pid, .task = living_thread(pid)};
	struct looking l = {
		.pid = pid, .mem = mem, .cost = cost, .lock = PTHREAD_MUTEX_INITIALIZER};
	const uint64_t *bits = l.places.bits;
	int err = -ETIMEDOUT;

	for (int tries = 0; (err == -ETIMEDOUT || err == -EAGAIN) && tries < TRIES; tries++)
		err = look_once(&l);
	free(l.v);
	if (err == -ETIMEDOUT)
		snprintf(why, INJECT_WHY, REASON_RUNS_ON);
	else if (err == -EAGAIN)
		snprintf(why, INJECT_WHY, "has no thread that lives long enough to be looked at");
	else if (err)
		snprintf(why, INJECT_WHY, "cannot be stopped: %s", strerror(-err));
	if (err)
		return err;
	for (size_t i = 0; i < BLOCK / 4 && !to->tid_offset; i++)
		if (bits[i / 64] >> i % 64 & 1)
			to->tid_offset = 4 * i;
	if (!l.why && !to->tid_offset)
		l.why = "has threads whose ids are not in their control blocks";
	if (l.why) {
		snprintf(why, INJECT_WHY, "%s", l.why);
		return -ENOTSUP;
	}
	to->state.loader = loader_of(&t, maps);
	to->main_stack = main_stack(pid);
	return 0;
}

/* Is @pc in the image's code or in an island? */
static bool is_ours(const struct inject_inside *in, uint64_t pc)
{
	const struct injected *i = in->injected;

	if (pc - in->base < in->head.text_end)
		return true;
	/* behind the image and the rings are the islands */
	for (uint32_t n = 2; n < i->nr_mapped; n++)
		if (pc - i->mapped[n].start < i->mapped[n].end - i->mapped[n].start)
			return true;
	return false;
}

/* Is there a call of @len bytes at @at, through a register or through memory: ff /2? */
static bool is_indirect_call(const uint8_t *at, size_t len)
{
	const uint8_t mod = at[1] >> 6, rm = at[1] & 7;
	const bool index = mod != 3 && rm == 4;
	size_t bytes = 2 + index + (mod == 1 ? 1 : mod == 2 ? 4 : 0);

	if (mod == 0 && (rm == 5 || (index && (at[2] & 7) == 5)))
		bytes += 4; /* relative to rip, or to nothing */
	return at[0] == 0xff && (at[1] & 0x38) == 0x10 && bytes == len;
}

/* Does @pc follow a call instruction of the image?  Then it is a return address, perhaps one that
 * was left on the stack, and the thread's note tells whether it is in use. */
static bool is_return(const struct inject_inside *in, uint64_t pc)
{
	const uint64_t into = pc - in->base;
	const uint8_t *at = in->text + into;

	if (into >= in->head.text_end || into < 7)
		return false;
	for (size_t len = 2; len <= 7; len++)
		if (is_indirect_call(at - len, len))
			return true;
	return at[-5] == 0xe8;
}

/* Read what is @into the image. */
static bool read_there(const struct inject_inside *in, uint64_t into, void *to, size_t bytes)
{
	return pread(in->mem, to, bytes, (off_t)(in->base + into)) == (ssize_t)bytes;
}

/* Does the thread's note say that it is in a call, or has it left one by a jump? */
static bool is_noted(const struct inject_inside *in, const struct inject_thread *t)
{
	const uint32_t nr = in->head.nr_threads;
	const pid_t tid = in->own_numbers ? own_number_of(in->pid, t->tid) : t->tid;

	for (uint32_t i = 0; i < INJECTED_TRIES && i < nr; i++) {
		uint32_t n = (injected_first_place(t->regs.fs_base, nr) + i) % nr;
		struct injected_thread note;

		if (!read_there(in, in->head.threads + n * sizeof(note), &note, sizeof(note)))
			return true;
		if (!note.tcb)
			return false; /* no place is ever free again */
		if (note.tcb == t->regs.fs_base && note.tid == (uint32_t)tid)
			return note.inside;
	}
	return false;
}

/* Is a thread in a call that has no note? */
static bool has_strangers(const struct inject_inside *in)
{
	uint64_t nr;

	return !read_there(in, in->head.injected + offsetof(struct injected, nr_strangers), &nr,
			   sizeof(nr)) ||
	       nr;
}

/* Is the word @i of a stack the pc in a signal's frame?  There the flags and the segment of user
 * space's code follow (struct sigcontext). */
static bool is_kept(const struct inject_thread *t, size_t i)
{
	return i + 2 < t->nr && t->words[i + 1] & FLAGS_SET && t->words[i + 1] < FLAGS_END &&
	       (t->words[i + 2] & 0xffff) == CODE_64;
}

bool inject_threads_inside(void *ctx, const struct inject_thread *t)
{
	struct inject_inside *in = ctx;

	if (!t)
		return has_strangers(in);
	if (is_ours(in, t->regs.rip) || is_noted(in, t))
		return true;
	for (size_t i = 0; i < t->nr; i++)
		if (is_ours(in, t->words[i]) && (!is_return(in, t->words[i]) || is_kept(t, i)))
			return true;
	return false;
}
