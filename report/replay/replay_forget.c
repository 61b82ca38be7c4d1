/* replay_forget.c - what is known of processes that have ended long ago: see replay_forget_ended()
 */
#include <errno.h>
#include <stdlib.h>

#include "report/replay/replay.h"

/* Those that are forgotten. */
struct forgotten {
	const struct live_ended *all; /* by id */
	size_t nr;
	const struct address_spaces *spaces;
};

static int compare_id(const void *key, const void *item)
{
	uint32_t tgid = *(const uint32_t *)key, other = ((const struct live_ended *)item)->tgid;

	return tgid < other ? -1 : tgid > other;
}

/* Is this a snapshot of one of them?  A process that has its id by now has later ones. */
static bool is_past(void *arg, uint32_t tgid, uint64_t time_ns)
{
	const struct forgotten *forgotten = arg;
	const struct live_ended *found =
		bsearch(&tgid, forgotten->all, forgotten->nr, sizeof(*found), compare_id);

	/* the last one that had this id */
	while (found && found + 1 < forgotten->all + forgotten->nr && found[1].tgid == tgid)
		found++;
	return found && time_ns <= found->time_ns;
}

static bool is_gone(void *arg, uint32_t tgid)
{
	return is_past(arg, tgid, 0) &&
	       !address_spaces_knows(((const struct forgotten *)arg)->spaces, tgid);
}

int replay_forget_ended(struct replay *leaks, size_t keep,
			void (*forgot)(void *arg, uint32_t stack), void *arg)
{
	struct live_ended *ended;
	struct forgotten forgotten = {.spaces = leaks->spaces};
	bool *numbers;
	int err = live_forget_ended(leaks->live, keep, &ended, &forgotten.nr);

	if (err || !forgotten.nr)
		return err;
	forgotten.all = ended;
	numbers = calloc(live_nr_processes(leaks->live), sizeof(*numbers));
	for (size_t i = 0; numbers && i < forgotten.nr; i++)
		numbers[ended[i].number] = true;
	for (uint32_t i = 0; numbers && i < leaks->stacks->nr; i++) {
		if (!numbers[leaks->stacks->all[i].process])
			continue;
		stack_stats_restart(leaks->figures, i);
		if (forgot)
			forgot(arg, i);
	}
	address_spaces_forget(leaks->spaces, is_past, &forgotten);
	stack_stats_forget(leaks->figures, is_gone, &forgotten);
	thread_names_forget(leaks->threads, is_gone, &forgotten);
	thread_names_forget(leaks->processes, is_gone, &forgotten);
	memory_samples_forget(&leaks->memory, is_gone, &forgotten);
	err = numbers ? 0 : -ENOMEM;
	free(numbers);
	free(ended);
	return err;
}
