/* growth_track.c - see growth_track.h */
#include "report/stats/growth_track.h"

#include <errno.h>
#include <string.h>

_Static_assert(GROWTH_SLICES <= 32, "each slice has a bit");
_Static_assert(GROWTH_LIFETIMES <= 64, "each age has a bit");
_Static_assert(GROWTH_SLICES * sizeof(struct growth_slice) <= POOL_MOST,
	       "the room is a power of 2");
_Static_assert(64 * sizeof(struct growth_age) <= POOL_MOST, "likewise");

/* How many of those that were @met are before number @at.  gcc calls a function for its builtin,
 * as not each x86-64 has the instruction. */
static size_t before(uint64_t met, size_t at)
{
	uint64_t bits = met & (((uint64_t)1 << at) - 1);

	bits -= bits >> 1 & 0x5555555555555555;
	bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (bits * 0x0101010101010101) >> 56;
}

static bool has(uint64_t met, size_t at)
{
	return met >> at & 1;
}

/* Make room for one of @size bytes at @place of @array, which has @nr.  Returns the array, or NULL
 * when there is no memory: then it is as before. */
static void *open_gap(struct pool *pool, void *array, uint8_t *room, size_t nr, size_t place,
		      size_t size)
{
	if (nr == *room) {
		const size_t more = nr ? 2 * nr : 1;
		void *moved = pool_enlarge(pool, array, nr * size, more * size);

		if (!moved)
			return NULL;
		array = moved;
		*room = (uint8_t)more;
	}
	memmove((char *)array + (place + 1) * size, (char *)array + place * size,
		(nr - place) * size);
	return array;
}

/* A slice in which nothing changed yet: what was outstanding before it still is. */
static struct growth_slice *add_slice(struct growth_track *track, struct pool *pool, size_t at)
{
	const size_t place = before(track->met, at);
	struct growth_slice *all =
		open_gap(pool, track->slices, &track->slices_room, track->nr, place, sizeof(*all));
	const uint64_t bytes = all && place ? all[place - 1].bytes : 0;

	if (!all)
		return NULL;
	track->slices = all;
	all[place] = (struct growth_slice){.bytes = bytes, .most = bytes};
	track->met |= (uint32_t)1 << at;
	track->nr++;
	if (at > track->last)
		track->last = (uint8_t)at;
	return &all[place];
}

struct growth_slice *growth_track_meet(struct growth_track *track, struct pool *pool, size_t at)
{
	return has(track->met, at) ? &track->slices[before(track->met, at)]
				   : add_slice(track, pool, at);
}

/* An age that no block had yet. */
static struct growth_age *add_age(struct growth_track *track, struct pool *pool, size_t i)
{
	const size_t nr = before(track->ages_met, 63), place = before(track->ages_met, i);
	struct growth_age *all =
		open_gap(pool, track->ages, &track->ages_room, nr, place, sizeof(*all));

	if (!all)
		return NULL;
	track->ages = all;
	all[place] = (struct growth_age){0};
	track->ages_met |= (uint64_t)1 << i;
	return &all[place];
}

int growth_track_freed(struct growth_track *track, struct pool *pool, uint64_t us, uint64_t blocks)
{
	size_t i = us ? 64 - (size_t)__builtin_clzll(us) : 0;
	struct growth_age *age;
	size_t part;

	if (i > GROWTH_LIFETIMES - 1)
		i = GROWTH_LIFETIMES - 1;
	age = has(track->ages_met, i) ? &track->ages[before(track->ages_met, i)]
				      : add_age(track, pool, i);
	if (!age)
		return -ENOMEM;
	age->blocks += blocks;
	/* behind the leading bit of the time */
	part = (i ? us << GROWTH_PART_BITS >> (i - 1) : 0) % GROWTH_PARTS;
	if (++age->parts[part] == UINT8_MAX)
		for (size_t at = 0; at < GROWTH_PARTS; at++)
			age->parts[at] /= 2;
	return 0;
}

void growth_track_widen(struct growth_track *track)
{
	struct growth_slice *from = track->slices, *to = track->slices;
	uint32_t met = 0;

	for (size_t at = 0; at < GROWTH_SLICES; at++) {
		const uint32_t bit = (uint32_t)1 << at / 2;

		if (!has(track->met, at))
			continue;
		if (met & bit) {
			to[-1].bytes = from->bytes;
			to[-1].most = from->most > to[-1].most ? from->most : to[-1].most;
			to[-1].given += from->given;
			to[-1].gone += from->gone;
		} else {
			*to++ = *from;
		}
		from++;
		met |= bit;
	}
	track->met = met;
	track->last /= 2;
	track->nr = (uint8_t)(to - track->slices);
}

struct growth_slice growth_track_at(const struct growth_track *track, size_t at)
{
	const size_t place = before(track->met, at);
	const uint64_t bytes = place ? track->slices[place - 1].bytes : 0;

	return has(track->met, at) ? track->slices[place]
				   : (struct growth_slice){.bytes = bytes, .most = bytes};
}

struct growth_age growth_track_age(const struct growth_track *track, size_t i)
{
	return has(track->ages_met, i) ? track->ages[before(track->ages_met, i)]
				       : (struct growth_age){0};
}

size_t growth_track_ages(const struct growth_track *track, size_t nr)
{
	return before(track->ages_met, nr);
}
