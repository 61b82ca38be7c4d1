/* registers.c - see registers.h */
#include "record/reach/registers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/base/proc.h"

#define ARGS 6 /* of a system call */
#define SP   7 /* DWARF numbers, psABI figure 3.36 */
#define PC   16

static void set(struct mlk_reach_thread *thread, int reg, uint64_t value)
{
	thread->regs[reg] = value;
	thread->known |= 1u << reg;
}

void registers_parse(struct mlk_reach_thread *thread, const char *text)
{
	/* rdi, rsi, rdx, r10, r8, r9 */
	static const int places[ARGS] = {5, 4, 1, 10, 8, 9};
	uint64_t number[ARGS + 2];
	long call;
	int nr = 0;
	char *end;

	/* "running", "-1 sp pc", or "number args[6] sp pc" */
	call = strtol(text, &end, 10);
	if (end == text)
		return;
	for (text = end; nr < ARGS + 2; text = end) {
		number[nr] = strtoull(text, &end, 16);
		if (end == text)
			break;
		nr++;
	}
	if (nr != (call < 0 ? 2 : ARGS + 2))
		return;
	for (int i = 0; i < nr - 2; i++)
		set(thread, places[i], number[i]);
	set(thread, SP, number[nr - 2]);
	set(thread, PC, number[nr - 1]);
	thread->how = MLK_REACH_WAITING;
}

/* A thread of which the program knows nothing. */
static int read_one(const struct target *t, pid_t tid, struct reach_threads *threads)
{
	struct mlk_reach_thread *thread;
	char text[256];

	if (grow_array(&threads->v, threads->nr, &threads->room, sizeof(*threads->v)))
		return -ENOMEM;
	thread = &threads->v[threads->nr++];
	*thread = (struct mlk_reach_thread){.tid = (uint32_t)tid};
	if (!target_read_syscall(t, tid, text, sizeof(text)))
		registers_parse(thread, text);
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct mlk_reach_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int read_others(const struct target *t, const struct reach_threads *known,
		       struct reach_threads *threads)
{
	DIR *dir = proc_threads(t->pid);
	int err = 0;
	pid_t tid;

	if (!dir)
		return -errno;
	while (!err && (tid = proc_next_thread(dir)) > 0) {
		const struct mlk_reach_thread key = {.tid = (uint32_t)tid};

		if (!known->nr || !bsearch(&key, known->v, known->nr, sizeof(key), by_tid))
			err = read_one(t, tid, threads);
	}
	closedir(dir);
	return err;
}

int registers_read(const struct target *t, struct task_regs *regs, struct reach_threads *threads,
		   struct reach_roots *roots)
{
	struct reach_threads known = {0};
	int err = 0;

	if (regs)
		err = task_regs_read(regs, t->pid, &known.v, &known.nr, roots);
	if (err && err != -ENOMEM)
		err = 0;
	if (known.nr)
		qsort(known.v, known.nr, sizeof(*known.v), by_tid);
	for (size_t i = 0; i < known.nr && !err; i++) {
		err = grow_array(&threads->v, threads->nr, &threads->room, sizeof(*threads->v));
		if (!err)
			threads->v[threads->nr++] = known.v[i];
	}
	if (!err)
		err = read_others(t, &known, threads);
	reach_threads_release(&known);
	return err;
}

static bool is_same(const struct mlk_reach_thread *a, const struct mlk_reach_thread *b)
{
	return a->known == b->known && !memcmp(a->regs, b->regs, sizeof(a->regs));
}

/* Keep of @all, which are of one thread, each that differs.  Returns how many that is. */
static size_t settle_one(struct mlk_reach_thread *all, size_t nr)
{
	size_t kept = 0, unknown = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t same = 0;

		if (all[i].how == MLK_REACH_UNKNOWN) {
			unknown++;
			continue;
		}
		while (same < kept && !is_same(&all[same], &all[i]))
			same++;
		if (same == kept)
			all[kept++] = all[i];
		else if (all[i].how == MLK_REACH_SAMPLED)
			all[same].how = MLK_REACH_SAMPLED;
	}
	for (size_t i = 0; i < kept && (kept > 1 || unknown); i++)
		all[i].how = MLK_REACH_SAMPLED;
	/* what is left at the beginning is of no other how */
	return kept ? kept : 1;
}

size_t registers_settle(struct reach_threads *threads)
{
	struct mlk_reach_thread *v = threads->v;
	size_t kept = 0, unknown = 0, end;

	if (threads->nr)
		qsort(v, threads->nr, sizeof(*v), by_tid);
	for (size_t i = 0; i < threads->nr; i = end) {
		size_t of_it;

		for (end = i; end < threads->nr && v[end].tid == v[i].tid; end++)
			;
		of_it = settle_one(&v[i], end - i);
		unknown += v[i].how == MLK_REACH_UNKNOWN;
		memmove(&v[kept], &v[i], of_it * sizeof(*v));
		kept += of_it;
	}
	threads->nr = kept;
	return unknown;
}

void reach_threads_release(struct reach_threads *threads)
{
	free(threads->v);
	*threads = (struct reach_threads){0};
}
