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

uint64_t address_spaces_hash(const struct space *space)
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
	query.hash = address_spaces_hash(&space);
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

int address_spaces_add_names(struct address_spaces *spaces, const struct mlk_code_names *names,
			     struct trace_modules *images)
{
	return generated_names_add(&spaces->names, names, images);
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
	if (!spaces->shared)
		generated_names_sort(&spaces->names);
	named_spaces_release(&spaces->named);
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

/* All mappings of @space, and the kernel's, as the unwinder has them; *@out is to be freed. */
static int list_maps(struct address_spaces *spaces, struct space *space, struct dwunw_mapping **out,
		     size_t *nr_out)
{
	bool is_kernel =
		spaces->kernel_space != UINT32_MAX && space == &spaces->all[spaces->kernel_space];
	size_t nr = space->nr_maps, nr_kernel = is_kernel ? 0 : spaces->nr_kernel;
	struct dwunw_mapping *maps = calloc(nr + nr_kernel + 1, sizeof(*maps));

	*out = maps;
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
	*nr_out = nr + nr_kernel;
	return 0;
}

static const struct generated_names *names_of(const struct address_spaces *spaces)
{
	return spaces->shared ? &spaces->shared->names : &spaces->names;
}

static int build_space(struct address_spaces *spaces, struct space *space)
{
	struct dwunw_mapping *maps;
	size_t nr = 0;
	int err = list_maps(spaces, space, &maps, &nr);

	if (!err)
		err = dwunw_space_new(&space->modules, spaces->dw, maps, nr);
	free(maps);
	if (!err && !spaces->shared && !spaces->grows && !spaces->names.nr_batches) {
		free(space->maps); /* they have served to tell equal snapshots */
		space->maps = NULL;
		space->nr_maps = 0;
	}
	return err;
}

/* The space of @base with the names of @tgid at @epoch. */
static int find_named(struct address_spaces *spaces, struct space *base, uint32_t tgid,
		      size_t epoch, const struct space **out)
{
	struct named_space key = {
		.base = (uint32_t)(base - spaces->all), .tgid = tgid, .epoch = epoch};
	struct dwunw_mapping *maps = NULL, *all = NULL;
	size_t nr = 0;
	int err;

	*out = named_spaces_find(&spaces->named, key.base, tgid, epoch);
	if (*out)
		return 0;
	err = list_maps(spaces, base, &maps, &nr);
	if (!err)
		err = generated_names_apply(names_of(spaces), tgid, epoch, maps, nr, &all,
					    &key.nr_maps);
	if (!err)
		err = named_spaces_add(&spaces->named, &key, all, spaces->dw, SPACES_MAX_MAPPINGS);
	free(maps);
	free(all);
	*out = err ? NULL : spaces->named.all[spaces->named.last].space;
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
	bool named;
	size_t epoch = generated_names_epoch(names_of(spaces), tgid, time_ns, &named);
	int err;

	if (named && space != &spaces->empty)
		return find_named(spaces, space, tgid, epoch, out);
	err = space->modules ? 0 : build_space(spaces, space);
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
	named_spaces_release(&spaces->named);
	generated_names_release(&spaces->names);
	intern_release(&spaces->table);
	if (!spaces->shared) {
		free(spaces->snapshots);
		free(spaces->kernel);
	}
	free(spaces->used);
	free(spaces);
}
