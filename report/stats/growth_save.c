/* growth_save.c - see growth_save.h */
#include "report/stats/growth_save.h"

#include <errno.h>
#include <string.h>

#include "format/reader.h"
#include "report/base/array.h"

/* Of all. */
struct saved_growth {
	uint64_t start_ns, first_ns;
	uint32_t doubled, failed;
	struct replaced_times older[REPLACED_CLASSES];
};

/* Of a track, before its slices and ages. */
struct saved_track {
	uint64_t blocks, ages_met;
	uint32_t met, last;
};

static size_t count_bits(uint64_t bits)
{
	size_t nr = 0;

	for (; bits; bits &= bits - 1)
		nr++;
	return nr;
}

static void save_track(struct save *to, const struct growth_track *track)
{
	const struct saved_track saved = {.blocks = track->blocks,
					  .ages_met = track->ages_met,
					  .met = track->met,
					  .last = track->last};

	save_put(to, &saved, sizeof(saved));
	save_put(to, track->slices, track->nr * sizeof(*track->slices));
	save_put(to, track->ages, count_bits(track->ages_met) * sizeof(*track->ages));
}

void growth_save(const struct growth *growth, struct save *to)
{
	struct saved_growth all = {.start_ns = growth->start_ns,
				   .first_ns = growth->first_ns,
				   .doubled = growth->doubled};

	memcpy(all.older, growth->replaced.older, sizeof(all.older));
	save_put(to, &all, sizeof(all));
	save_array(to, growth->replaced.all, growth->replaced.nr, sizeof(*growth->replaced.all));
	save_track(to, &growth->sum);
	save_put(to, &(uint64_t){growth->nr}, sizeof(uint64_t));
	for (size_t i = 0; i < growth->nr; i++)
		save_track(to, &growth->all[i]);
}

/* A copy in @pool of the next @nr things of @size bytes; NULL where there are none, or with *@err.
 */
static void *load_copy(struct load *from, struct pool *pool, size_t nr, size_t size, int *err)
{
	const void *bytes = load_bytes(from, nr, size);
	void *copy = bytes && nr ? pool_enlarge(pool, NULL, 0, nr * size) : NULL;

	if (!bytes)
		*err = MLK_E_CORRUPT;
	else if (nr && !copy)
		*err = -ENOMEM;
	if (copy)
		memcpy(copy, bytes, nr * size);
	return copy;
}

static int load_track(struct growth_track *track, struct pool *pool, struct load *from)
{
	struct saved_track saved;
	size_t nr, nr_ages;
	int err = 0;

	if (!load_get(from, &saved, sizeof(saved)) || saved.last >= GROWTH_SLICES)
		return MLK_E_CORRUPT;
	nr = count_bits(saved.met);
	nr_ages = count_bits(saved.ages_met);
	/* the last slice that was met is the last there is */
	if ((nr && saved.met >> saved.last != 1) || saved.ages_met >> GROWTH_LIFETIMES)
		return MLK_E_CORRUPT;
	*track = (struct growth_track){.blocks = saved.blocks,
				       .last = (uint8_t)saved.last,
				       .met = saved.met,
				       .nr = (uint8_t)nr,
				       .slices_room = (uint8_t)nr,
				       .ages_met = saved.ages_met,
				       .ages_room = (uint8_t)nr_ages};
	track->slices = load_copy(from, pool, nr, sizeof(*track->slices), &err);
	if (!err)
		track->ages = load_copy(from, pool, nr_ages, sizeof(*track->ages), &err);
	return err;
}

static int load_pairs(struct replaced *replaced, struct load *from)
{
	struct replaced_pair pair;
	uint32_t number;
	int added = 1;

	for (size_t nr = load_count(from, sizeof(pair)); added > 0 && nr; nr--) {
		load_get(from, &pair, sizeof(pair));
		if (pair.class >= REPLACED_CLASSES)
			return MLK_E_CORRUPT;
		/* these are found by growth_finish() */
		pair.unsized = 0;
		pair.amount = (struct live_amount){0};
		added = intern_pair(&replaced->table, &pair, sizeof(pair), &number);
	}
	return added < 0 ? added : added ? 0 : MLK_E_CORRUPT;
}

int growth_load(struct growth *growth, struct load *from, size_t nr_stacks)
{
	struct saved_growth all;
	size_t nr;
	int err;

	/* as many nanoseconds as there can be */
	if (!load_get(from, &all, sizeof(all)) || all.doubled > 44)
		return MLK_E_CORRUPT;
	growth->start_ns = all.start_ns;
	growth->first_ns = all.first_ns;
	growth->width_ns <<= all.doubled;
	growth->doubled = all.doubled;
	memcpy(growth->replaced.older, all.older, sizeof(all.older));
	err = load_pairs(&growth->replaced, from);
	if (!err)
		err = load_track(&growth->sum, &growth->pool, from);
	nr = err ? 0 : load_count(from, sizeof(struct saved_track));
	if (err || nr > nr_stacks)
		return err ? err : MLK_E_CORRUPT;
	err = array_cover(&growth->all, &growth->room, nr, sizeof(*growth->all));
	for (; !err && growth->nr < nr;
	     growth->taken += growth_track_bytes(&growth->all[growth->nr++]))
		err = load_track(&growth->all[growth->nr], &growth->pool, from);
	if (!err && from->bad)
		err = MLK_E_CORRUPT;
	return !err && !growth_is_allowed(growth) ? -ENOMEM : err;
}
