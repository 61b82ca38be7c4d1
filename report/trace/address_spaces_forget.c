/* address_spaces_forget.c - snapshots that are of no use any more: see address_spaces.h */
#include <stdlib.h>

#include "report/trace/address_spaces.h"

/* Which layouts are still of use, by number; NULL: there is no memory. */
static bool *list_needed(const struct address_spaces *spaces)
{
	bool *needed = calloc(spaces->nr + 1, sizeof(*needed));

	for (size_t i = 0; needed && i < spaces->nr_snapshots; i++)
		needed[spaces->snapshots[i].space] = true;
	if (needed && spaces->kernel_space < spaces->nr)
		needed[spaces->kernel_space] = true;
	return needed;
}

static void drop_space(struct address_spaces *spaces, struct space *space)
{
	spaces->nr_mappings -= space->nr_maps;
	spaces->nr_copied -= space->nr_copied;
	dwunw_space_free(space->modules);
	free(space->maps);
}

/* Release the layouts that no snapshot has any more; the others get new numbers.  Where there is no
 * memory for that, they stay until the next time. */
static void drop_unused(struct address_spaces *spaces)
{
	bool *needed = list_needed(spaces);
	uint32_t *numbers = calloc(spaces->nr + 1, sizeof(*numbers)), nr = 0;

	named_spaces_release(&spaces->named); /* they go by these numbers */
	if (needed && numbers) {
		hash_index_clear(&spaces->index);
		for (size_t i = 0; i < spaces->nr; i++) {
			if (!needed[i]) {
				drop_space(spaces, &spaces->all[i]);
				continue;
			}
			spaces->all[nr] = spaces->all[i];
			hash_index_add(&spaces->index, address_spaces_hash(&spaces->all[nr]), nr);
			numbers[i] = nr++;
		}
		for (size_t i = 0; i < spaces->nr_snapshots; i++)
			spaces->snapshots[i].space = numbers[spaces->snapshots[i].space];
		if (spaces->kernel_space < spaces->nr)
			spaces->kernel_space = numbers[spaces->kernel_space];
		spaces->nr = nr;
	}
	free(needed);
	free(numbers);
}

/* The first @nr snapshots are left. */
static void keep_snapshots(struct address_spaces *spaces, size_t nr)
{
	if (nr == spaces->nr_snapshots)
		return;
	spaces->nr_mappings -= spaces->nr_snapshots - nr;
	spaces->nr_snapshots = nr;
	drop_unused(spaces);
}

void address_spaces_forget(struct address_spaces *spaces,
			   bool (*is_past)(void *arg, uint32_t tgid, uint64_t time_ns), void *arg)
{
	size_t nr = 0;

	for (size_t i = 0; i < spaces->nr_snapshots; i++)
		if (!is_past(arg, spaces->snapshots[i].tgid, spaces->snapshots[i].time_ns))
			spaces->snapshots[nr++] = spaces->snapshots[i];
	keep_snapshots(spaces, nr);
}

void address_spaces_forget_replaced(struct address_spaces *spaces, uint64_t time_ns)
{
	const struct maps_snapshot *all = spaces->snapshots;
	size_t nr = 0;

	for (size_t i = 0; i < spaces->nr_snapshots; i++) {
		bool replaced = i + 1 < spaces->nr_snapshots && all[i + 1].tgid == all[i].tgid &&
				all[i + 1].time_ns <= time_ns;

		if (!replaced)
			spaces->snapshots[nr++] = all[i];
	}
	keep_snapshots(spaces, nr);
}
