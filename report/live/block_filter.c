/* block_filter.c - see block_filter.h */
#include "report/live/block_filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* @a and @b together, or the most there is. */
static uint64_t sum_of(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

struct chosen block_filter_of(const struct block_filter *choice, const struct thread_names *threads,
			      uint64_t start_ns, uint64_t end_ns)
{
	struct chosen chosen = {
		.thread = choice->thread,
		.pid = choice->pid,
		.threads = threads,
		.only = choice->only,
		.only_arg = choice->only_arg,
		.given_to_ns = UINT64_MAX,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.stop_ns = UINT64_MAX,
	};

	/* events of different threads can be some microseconds before the start */
	if (choice->from_ns)
		chosen.given_from_ns = sum_of(start_ns, choice->from_ns);
	if (choice->until)
		chosen.stop_ns = sum_of(start_ns, choice->until_ns);
	if (chosen.end_ns > chosen.stop_ns)
		chosen.end_ns = chosen.stop_ns;
	if (choice->older_ns)
		chosen.given_to_ns =
			chosen.end_ns > choice->older_ns ? chosen.end_ns - choice->older_ns : 0;
	chosen.all = !chosen.given_from_ns && chosen.given_to_ns == UINT64_MAX && !chosen.pid &&
		     !chosen.thread && !chosen.only;
	return chosen;
}

static bool is_number(const char *wanted)
{
	return !wanted[strspn(wanted, "0123456789")];
}

bool block_filter_is_thread(const char *wanted, uint32_t tid, const char *name)
{
	return is_number(wanted) ? strtoull(wanted, NULL, 10) == tid : !fnmatch(wanted, name, 0);
}

static bool is_thread(const struct chosen *chosen, const struct live_block *block)
{
	return block_filter_is_thread(chosen->thread, block->tid,
				      thread_names_get(chosen->threads, block->tgid, block->tid));
}

bool chosen_has(const struct chosen *chosen, const struct live_block *block)
{
	if (chosen->all)
		return true;
	return block->time_ns >= chosen->given_from_ns && block->time_ns <= chosen->given_to_ns &&
	       (!chosen->pid || block->tgid == chosen->pid) &&
	       (!chosen->thread || is_thread(chosen, block)) &&
	       (!chosen->only || chosen->only(chosen->only_arg, block));
}

struct visit {
	const struct chosen *chosen;
	void (*visit)(void *arg, const struct live_block *block);
	void *arg;
};

static void visit_chosen(void *arg, const struct live_block *block)
{
	const struct visit *visit = arg;

	if (chosen_has(visit->chosen, block))
		visit->visit(visit->arg, block);
}

void chosen_each(const struct chosen *chosen, const struct live *live,
		 void (*visit)(void *arg, const struct live_block *block), void *arg)
{
	struct visit wanted = {chosen, visit, arg};

	live_each(live, visit_chosen, &wanted);
}
