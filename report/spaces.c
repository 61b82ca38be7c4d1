/* spaces.c - see spaces.h */
#include "report/spaces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"

struct snapshot {
	uint32_t tgid;
	uint64_t time_ns;
	size_t order;		    /* in the trace: of two with one time, the later holds */
	struct dwunw_mapping *maps; /* .module is a number of images until they are built */
	size_t nr_maps;
	struct dwunw_space *space;
	bool owns_space; /* otherwise it is that of the snapshot before, whose maps are the same */
};

struct spaces {
	struct snapshot *all; /* in the order of the trace, then sorted by process and time */
	size_t nr, room;
	bool *used; /* by number of images */
	size_t used_room;
	struct dwunw_space *empty;
};

_Static_assert(sizeof(struct dwunw_mapping) == 32, "28 bytes and padding, which is kept zero");

int spaces_new(struct spaces **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static int mark_used(struct spaces *spaces, uint32_t number)
{
	size_t room = spaces->used_room;
	bool *used = array_grow(spaces->used, &room, (size_t)number + 1, sizeof(*used));

	if (!used)
		return -ENOMEM;
	memset(used + spaces->used_room, 0, (room - spaces->used_room) * sizeof(*used));
	spaces->used = used;
	spaces->used_room = room;
	spaces->used[number] = true;
	return 0;
}

static int copy_mapping(struct spaces *spaces, struct dwunw_mapping *to,
			const struct mlk_mapping *from, struct images *images)
{
	int err;

	to->start = from->start;
	to->end = from->end;
	to->file_offset = from->offset;
	to->module = DWUNW_NO_MODULE;
	if (!from->id.len && from->path[0] != '/')
		return 0; /* anonymous memory, or a thing of the kernel's */
	err = images_intern(images, &from->id, from->path, &to->module);
	return err ? err : mark_used(spaces, to->module);
}

int spaces_add(struct spaces *spaces, const struct mlk_maps *maps, struct images *images)
{
	struct snapshot snapshot = {.tgid = maps->tgid, .time_ns = maps->time_ns};
	struct snapshot *all;
	int err = -ENOMEM;

	all = array_grow(spaces->all, &spaces->room, spaces->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	spaces->all = all;
	/* zeroed: equal maps are found by their bytes, padding included */
	snapshot.maps = calloc(maps->nr ? maps->nr : 1, sizeof(*snapshot.maps));
	if (!snapshot.maps)
		return -ENOMEM;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *mapping = &maps->mappings[i];

		if (!(mapping->perms & MLK_PERM_X) || mapping->end < mapping->start)
			continue;
		err = copy_mapping(spaces, &snapshot.maps[snapshot.nr_maps], mapping, images);
		if (err)
			goto out;
		snapshot.nr_maps++;
	}
	snapshot.order = spaces->nr;
	spaces->all[spaces->nr++] = snapshot;
	return 0;
out:
	free(snapshot.maps);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct snapshot *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* A recorder takes a snapshot after each mmap of code, and most of them are the same: one space for
 * a row of equal ones keeps what the unwinder learned of it. */
static bool same_maps(const struct snapshot *x, const struct snapshot *y)
{
	return x->tgid == y->tgid && x->nr_maps == y->nr_maps &&
	       !memcmp(x->maps, y->maps, x->nr_maps * sizeof(*x->maps));
}

static int build_one(struct snapshot *snapshot, const struct images *images, struct dwunw *dw)
{
	for (size_t i = 0; i < snapshot->nr_maps; i++) {
		struct dwunw_mapping *mapping = &snapshot->maps[i];

		if (mapping->module != DWUNW_NO_MODULE)
			mapping->module = images_module(images, mapping->module);
	}
	snapshot->owns_space = true;
	return dwunw_space_new(&snapshot->space, dw, snapshot->maps, snapshot->nr_maps);
}

int spaces_build(struct spaces *spaces, const struct images *images, struct dwunw *dw)
{
	int err;

	if (spaces->nr)
		qsort(spaces->all, spaces->nr, sizeof(*spaces->all), compare);
	/* from the last to the first: building one changes the numbers in its maps */
	for (size_t i = spaces->nr; i-- > 0;) {
		struct snapshot *snapshot = &spaces->all[i];

		if (i && same_maps(snapshot - 1, snapshot))
			continue;
		err = build_one(snapshot, images, dw);
		if (err)
			return err;
	}
	for (size_t i = 1; i < spaces->nr; i++)
		if (!spaces->all[i].owns_space)
			spaces->all[i].space = spaces->all[i - 1].space;
	return dwunw_space_new(&spaces->empty, dw, NULL, 0);
}

struct dwunw_space *spaces_find(const struct spaces *spaces, uint32_t tgid, uint64_t time_ns)
{
	size_t low = 0, high = spaces->nr;

	/* the first snapshot that is too late, or of a later process */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct snapshot *at = &spaces->all[middle];

		if (at->tgid < tgid || (at->tgid == tgid && at->time_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && spaces->all[low - 1].tgid == tgid)
		return spaces->all[low - 1].space;
	if (low < spaces->nr && spaces->all[low].tgid == tgid)
		return spaces->all[low].space;
	return spaces->empty;
}

bool spaces_use(const struct spaces *spaces, uint32_t number)
{
	return number < spaces->used_room && spaces->used[number];
}

void spaces_free(struct spaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->nr; i++) {
		if (spaces->all[i].owns_space)
			dwunw_space_free(spaces->all[i].space);
		free(spaces->all[i].maps);
	}
	dwunw_space_free(spaces->empty);
	free(spaces->all);
	free(spaces->used);
	free(spaces);
}
