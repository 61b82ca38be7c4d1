/* sampling.c - see sampling.h */
#include "report/live/sampling.h"

#include <math.h>

/*
 * Weights are kept in these parts of one.  It is the size of a page, in which mappings are cut: the
 * bytes that a piece of them represents are then a whole number.
 */
#define WEIGHT_ONE 4096

struct sampling sampling_of(const struct mlk_meta *meta)
{
	return (struct sampling){.every = meta->sample_every, .bytes = meta->sample_bytes};
}

bool sampling_is_on(const struct sampling *s)
{
	return s->bytes || s->every > 1;
}

double sampling_weight(const struct sampling *s, uint64_t size)
{
	double bytes = size ? (double)size : 1; /* nothing at all weighs as much as a byte */

	if (s->bytes)
		return -1 / expm1(-bytes / (double)s->bytes);
	return s->every > 1 ? (double)s->every : 1;
}

/* A number from 0 to 1, of no pattern, and always the same for the same @id: splitmix64. */
static double fraction_of(uint64_t id)
{
	uint64_t mixed = (id + 1) * 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	mixed ^= mixed >> 31;
	return ldexp((double)(mixed >> 11), -53);
}

void sampling_weigh(const struct sampling *s, const struct mlk_event *event,
		    struct live_block *block)
{
	double weight;

	if (!sampling_is_on(s))
		return;
	weight = sampling_weight(s, event->size);
	/* a damaged trace may say that a sample represents more than there can be */
	weight = fmin(weight, 0x1p40);
	block->weight = (uint64_t)(weight * WEIGHT_ONE + 0.5);
	block->stands_for = (uint64_t)(weight + fraction_of(event->alloc_id));
}

struct live_amount sampling_amount(const struct live_block *block)
{
	unsigned __int128 parts = (unsigned __int128)block->size * block->weight;

	if (!block->weight)
		return (struct live_amount){.blocks = 1, .bytes = block->size};
	return (struct live_amount){.blocks = block->stands_for,
				    .bytes = (uint64_t)((parts + WEIGHT_ONE / 2) / WEIGHT_ONE)};
}

void sampling_error_add(struct sampling_error *error, const struct live_block *block)
{
	double weight = block->weight ? (double)block->weight / WEIGHT_ONE : 1;
	double each = weight * (weight - 1); /* (1 - p) / p^2 */

	error->blocks += each;
	error->bytes += each * (double)block->size * (double)block->size;
}
