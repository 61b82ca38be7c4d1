/* address_spaces.c - see address_spaces.h
 *
 * A recorder takes a snapshot after each mmap of code, and most of them are the same.  Equal ones
 * are one space, which keeps what the unwinder learned of it, and is built when an event needs it.
 */
#include "report/trace/address_spaces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/trace/code_mapping.h"

_Static_assert(sizeof(struct dwunw_mapping) == 32,
	       "no padding: equal maps are found by their bytes");

int address_spaces_new(struct address_spaces **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->kernel_space = UINT32_MAX;
	return 0;
}

static int mark_used(struct address_spaces *spaces, uint32_t number)
{
	int err = array_cover(&spaces->used, &spaces->used_room, (size_t)number + 1, sizeof(bool));

	if (!err)
		spaces->used[number] = true;
	return err;
}

static bool is_wanted_mapping(const struct mlk_mapping *mapping)
{
	return mapping->perms & MLK_PERM_X && mapping->end >= mapping->start;
}

static int copy_mapping(struct address_spaces *spaces, struct dwunw_mapping *to,
			const struct mlk_mapping *from, struct trace_modules *images)
{
	int err = code_mapping_copy(to, from, images);

	if (err || to->module == DWUNW_NO_MODULE)
		return err;
	return mark_used(spaces, to->module);
}

/* Copy what is executable of @maps to @space. */
static int copy_maps(struct address_spaces *spaces, struct space *space,
		     const struct mlk_maps *maps, struct trace_modules *images)
{
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < maps->nr; i++)
		nr += is_wanted_mapping(&maps->mappings[i]);
	/* zeroed: equal maps are found by their bytes */
	space->maps = calloc(nr ? nr : 1, sizeof(*space->maps));
	if (!space->maps)
		return -ENOMEM;
	for (size_t i = 0; i < maps->nr && !err; i++)
		if (is_wanted_mapping(&maps->mappings[i]))
			err = copy_mapping(spaces, &space->maps[space->nr_maps++],
					   &maps->mappings[i], images);
	return err;
}

static bool same_maps(const void *things, uint32_t number, const void *arg)
{
	const struct space *x = &((const struct address_spaces *)things)->all[number];
	const struct space *y = arg;

	return x->nr_maps == y->nr_maps && !memcmp(x->maps, y->maps, x->nr_maps * sizeof(*x->maps));
}

static uint64_t hash_maps(const struct space *space)
{
	return hash_bytes(0, space->maps, space->nr_maps * sizeof(*space->maps));
}

/* Is there room for @nr more mappings?  If so, take it. */
static bool take_room(struct address_spaces *spaces, size_t nr)
{
	if (nr > SPACES_MAX_MAPPINGS - spaces->nr_mappings) {
		spaces->ignored++;
		return false;
	}
	spaces->nr_mappings += nr;
	return true;
}

static int append_snapshot(struct address_spaces *spaces, const struct mlk_maps *maps,
			   uint32_t space)
{
	struct maps_snapshot snapshot = {
		.tgid = maps->tgid,
		.space = space,
		.time_ns = maps->time_ns,
		.order = spaces->next_order++,
	};

	return array_append(&spaces->snapshots, &spaces->nr_snapshots, &spaces->snapshots_room,
			    &snapshot, sizeof(snapshot));
}

int address_spaces_add(struct address_spaces *spaces, const struct mlk_maps *maps,
		       struct trace_modules *images)
{
	struct space space = {0};
	struct hash_query query = {.things = spaces, .key = &space, .equal = same_maps};
	uint32_t number;
	int err;

	if (!take_room(spaces, 1))
		return 0;
	err = copy_maps(spaces, &space, maps, images);
	if (err)
		goto out;
	query.hash = hash_maps(&space);
	if (!hash_index_find(&spaces->index, &query, &number)) {
		if (!take_room(spaces, space.nr_maps))
			goto out;
		err = intern(&spaces->table, &query, &space, sizeof(space), &number) < 0 ? -ENOMEM
											 : 0;
		if (!err)
			space.maps = NULL; /* they belong to @spaces */
	}
	if (!err)
		err = append_snapshot(spaces, maps, number);
out:
	free(space.maps);
	return err;
}

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

	if (needed && numbers) {
		hash_index_clear(&spaces->index);
		for (size_t i = 0; i < spaces->nr; i++) {
			if (!needed[i]) {
				drop_space(spaces, &spaces->all[i]);
				continue;
			}
			spaces->all[nr] = spaces->all[i];
			hash_index_add(&spaces->index, hash_maps(&spaces->all[nr]), nr);
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

bool address_spaces_knows(const struct address_spaces *spaces, uint32_t tgid)
{
	for (size_t i = 0; i < spaces->nr_snapshots; i++)
		if (spaces->snapshots[i].tgid == tgid)
			return true;
	return false;
}

static int compare_snapshots(const void *a, const void *b)
{
	const struct maps_snapshot *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The last snapshot that is of @tgid and not later than @time_ns; else its first one, else NULL. */
static const struct maps_snapshot *choose_snapshot(const struct address_spaces *spaces,
						   uint32_t tgid, uint64_t time_ns)
{
	size_t low = 0, high = spaces->nr_snapshots;

	/* the first snapshot that is too late, or of a later process */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct maps_snapshot *at = &spaces->snapshots[middle];

		if (at->tgid < tgid || (at->tgid == tgid && at->time_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && spaces->snapshots[low - 1].tgid == tgid)
		return &spaces->snapshots[low - 1];
	if (low < spaces->nr_snapshots && spaces->snapshots[low].tgid == tgid)
		return &spaces->snapshots[low];
	return NULL;
}

/* Keep what the kernel has mapped, which has process number 0. */
static int keep_kernel(struct address_spaces *spaces)
{
	const struct maps_snapshot *last = choose_snapshot(spaces, 0, UINT64_MAX);
	const struct space *space = last ? &spaces->all[last->space] : NULL;

	free(spaces->kernel);
	spaces->kernel = NULL;
	spaces->nr_kernel = 0;
	spaces->kernel_space = UINT32_MAX;
	if (!space)
		return 0;
	spaces->kernel = calloc(space->nr_maps + 1, sizeof(*spaces->kernel));
	if (!spaces->kernel)
		return -ENOMEM;
	if (space->nr_maps)
		memcpy(spaces->kernel, space->maps, space->nr_maps * sizeof(*space->maps));
	spaces->nr_kernel = space->nr_maps;
	spaces->kernel_space = last->space;
	return 0;
}

int address_spaces_prepare(struct address_spaces *spaces, const struct trace_modules *images,
			   struct dwunw *dw)
{
	spaces->images = images;
	spaces->dw = dw;
	if (spaces->nr_snapshots)
		qsort(spaces->snapshots, spaces->nr_snapshots, sizeof(*spaces->snapshots),
		      compare_snapshots);
	if (keep_kernel(spaces))
		return -ENOMEM;
	return spaces->empty.modules ? 0 : dwunw_space_new(&spaces->empty.modules, dw, NULL, 0);
}

int address_spaces_share(struct address_spaces **out, const struct address_spaces *spaces,
			 struct dwunw *dw)
{
	struct address_spaces *copy = calloc(1, sizeof(*copy));
	int err = -ENOMEM;

	*out = NULL;
	if (!copy)
		return -ENOMEM;
	*copy = (struct address_spaces){
		.snapshots = spaces->snapshots,
		.nr_snapshots = spaces->nr_snapshots,
		.all = calloc(spaces->nr ? spaces->nr : 1, sizeof(*copy->all)),
		.kernel = spaces->kernel,
		.nr_kernel = spaces->nr_kernel,
		.kernel_space = spaces->kernel_space,
		.images = spaces->images,
		.dw = dw,
		.shared = spaces,
	};
	if (copy->all)
		err = dwunw_space_new(&copy->empty.modules, dw, NULL, 0);
	if (err) {
		address_spaces_free(copy);
		return err;
	}
	copy->nr = spaces->nr;
	for (size_t i = 0; i < copy->nr; i++) {
		copy->all[i].maps = spaces->all[i].maps;
		copy->all[i].nr_maps = spaces->all[i].nr_maps;
	}
	*out = copy;
	return 0;
}

/* Append to @to the mappings @from, with the modules as the unwinder has them. */
static void append_maps(const struct address_spaces *spaces, struct dwunw_mapping *to,
			const struct dwunw_mapping *from, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uint32_t number = from[i].module;

		to[i] = from[i];
		if (number == DWUNW_NO_MODULE)
			continue;
		to[i].module = spaces->images->all[number].module;
		if (to[i].module == DWUNW_NO_MODULE)
			to[i].module = trace_modules_absent(number);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct dwunw_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int build_space(struct address_spaces *spaces, struct space *space)
{
	bool is_kernel =
		spaces->kernel_space != UINT32_MAX && space == &spaces->all[spaces->kernel_space];
	size_t nr = space->nr_maps, nr_kernel = is_kernel ? 0 : spaces->nr_kernel;
	struct dwunw_mapping *maps = calloc(nr + nr_kernel + 1, sizeof(*maps));
	int err;

	if (!maps)
		return -ENOMEM;
	if (nr_kernel > SPACES_MAX_MAPPINGS - spaces->nr_copied)
		nr_kernel = 0; /* no trace of a kernel has so many */
	spaces->nr_copied += nr_kernel;
	space->nr_copied = nr_kernel;
	append_maps(spaces, maps, space->maps, nr);
	append_maps(spaces, maps + nr, spaces->kernel, nr_kernel);
	if (nr_kernel)
		qsort(maps, nr + nr_kernel, sizeof(*maps), by_start);
	err = dwunw_space_new(&space->modules, spaces->dw, maps, nr + nr_kernel);
	free(maps);
	if (!err && !spaces->shared && !spaces->grows) {
		free(space->maps); /* they have served to tell equal snapshots */
		space->maps = NULL;
		space->nr_maps = 0;
	}
	return err;
}

/* The space of @tgid at @time_ns, which may not be built yet.  Of a process of which nothing is
 * known, that is the kernel's, if there is one. */
static struct space *choose_space(struct address_spaces *spaces, uint32_t tgid, uint64_t time_ns)
{
	const struct maps_snapshot *snapshot = choose_snapshot(spaces, tgid, time_ns);

	if (snapshot)
		return &spaces->all[snapshot->space];
	return spaces->kernel_space != UINT32_MAX ? &spaces->all[spaces->kernel_space]
						  : &spaces->empty;
}

int address_spaces_find(struct address_spaces *spaces, uint32_t tgid, uint64_t time_ns,
			const struct space **out)
{
	struct space *space = choose_space(spaces, tgid, time_ns);
	int err = space->modules ? 0 : build_space(spaces, space);

	*out = err ? NULL : space;
	return err;
}

bool address_spaces_use(const struct address_spaces *spaces, uint32_t number)
{
	return number < spaces->used_room && spaces->used[number];
}

void address_spaces_free(struct address_spaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->nr; i++) {
		dwunw_space_free(spaces->all[i].modules);
		if (!spaces->shared)
			free(spaces->all[i].maps);
	}
	dwunw_space_free(spaces->empty.modules);
	intern_release(&spaces->table);
	if (!spaces->shared) {
		free(spaces->snapshots);
		free(spaces->kernel);
	}
	free(spaces->used);
	free(spaces);
}
