/* growth_stack.c - after the replay: what growth.h knows of a stack, or of some together */
#include <math.h>
#include <string.h>

#include "report/stats/growth.h"

/* Blocks that were freed, by their ages; from growth_track, with the parts of each class. */
struct ages {
	double blocks[GROWTH_LIFETIMES][GROWTH_PARTS];
	bool any;
};

int growth_first_old(const struct growth *growth, uint64_t part)
{
	uint64_t old_us = growth->width_ns * growth->slices / 1000 / part;
	int i = 1;

	while (i < GROWTH_LIFETIMES - 1 && (uint64_t)1 << (i - 1) < old_us)
		i++;
	return i;
}

uint64_t growth_frees(const struct growth_track *track, int first)
{
	uint64_t all = 0;

	for (size_t i = growth_track_ages(track, GROWTH_LIFETIMES),
		    from = growth_track_ages(track, (size_t)first);
	     i-- > from;)
		all += track->ages[i].blocks;
	return all;
}

/* How many blocks of a sample stand for one of its estimates. */
static double samples_a_block(const struct growth_track *track)
{
	double given = 0;

	for (size_t i = 0; i < track->nr; i++)
		given += track->slices[i].given;
	return track->blocks ? given / (double)track->blocks : 1;
}

static void add_ages(struct ages *ages, const struct growth_track *track)
{
	ages->any |= track->ages_met != 0;
	for (size_t i = 0; i < GROWTH_LIFETIMES && track->ages_met >> i; i++) {
		const struct growth_age age = growth_track_age(track, i);
		double all = 0;

		for (int part = 0; part < GROWTH_PARTS; part++)
			all += age.parts[part];
		for (int part = 0; part < GROWTH_PARTS && all > 0; part++)
			ages->blocks[i][part] += (double)age.blocks * age.parts[part] / all;
	}
}

/* The middle of a part of a class of ages. */
static uint64_t age_of(int class, int part)
{
	double first = class ? ldexp(1000, class - 1) : 0; /* nanoseconds */

	return class ? (uint64_t)(first * (1 + (part + 0.5) / GROWTH_PARTS)) : 500;
}

/* About so long half of those blocks lived that are in the classes from @first on; 0: there is
 * none. */
static uint64_t median_of(const struct ages *ages, int first)
{
	double all = 0, below = 0;

	if (!ages->any)
		return 0;
	for (int i = first; i < GROWTH_LIFETIMES; i++)
		for (int part = 0; part < GROWTH_PARTS; part++)
			all += ages->blocks[i][part];
	for (int i = first; i < GROWTH_LIFETIMES && all > 0; i++)
		for (int part = 0; part < GROWTH_PARTS; part++) {
			below += ages->blocks[i][part];
			if (2 * below >= all * (1 - 1e-9))
				return age_of(i, part);
		}
	return 0;
}

#define TIMES 8 /* parts of the time: of a sample, less says much by chance */

/* Of @bytes it is not known when the older blocks were freed, as in a sample.  What is left of a
 * stack's growth without them is taken to be even: they were freed when it was more than that. */
static void replace_when_most(const struct growth *growth, const struct growth_stack *stack,
			      double bytes, double then[GROWTH_SLICES])
{
	double grown[TIMES] = {0}, wide[TIMES] = {0}, low = 0, high = 0, sum;

	for (size_t at = 0; at < growth->slices; at++) {
		double before = at ? (double)stack->bytes[at - 1] : 0;
		size_t i = at * TIMES / growth->slices;

		grown[i] += (double)stack->bytes[at] - before;
		wide[i]++;
	}
	for (size_t i = 0; i < TIMES; i++)
		high = wide[i] > 0 ? fmax(high, grown[i] / wide[i]) : high;
	for (int steps = 0; steps < 60; steps++) {
		double even = (low + high) / 2;

		sum = 0;
		for (size_t i = 0; i < TIMES; i++)
			sum += fmax(grown[i] - even * wide[i], 0);
		*(sum > bytes ? &low : &high) = even;
	}
	for (size_t at = 0; at < growth->slices; at++) {
		size_t i = at * TIMES / growth->slices;

		then[at] += fmax(grown[i] / wide[i] - high, 0);
	}
}

/* When the older blocks were freed that blocks of @stack replace. */
static void set_replaced(const struct growth *growth, const struct replaced_credit *credit,
			 struct growth_stack *stack)
{
	double known = 0, then[GROWTH_SLICES], sum = 0;

	for (size_t at = 0; at < GROWTH_SLICES; at++)
		known += then[at] = credit->then[at];
	/* what is not whole is rounded */
	if ((double)credit->amount.bytes > known * 1.001 + 1)
		replace_when_most(growth, stack, (double)credit->amount.bytes - known, then);
	for (size_t at = 0; at < GROWTH_SLICES; at++)
		stack->replaced_then[at] = (float)(sum += then[at]);
	stack->replaced = credit->amount;
}

static void add_credit(struct replaced_credit *sum, const struct replaced_credit *more)
{
	live_amount_add(&sum->amount, more->amount);
	sum->others += more->others;
	for (size_t at = 0; at < GROWTH_SLICES; at++)
		sum->then[at] += more->then[at];
}

static void add_track(const struct growth *growth, struct growth_stack *stack,
		      const struct growth_track *track)
{
	double samples = samples_a_block(track);
	uint64_t old = growth_frees(track, growth_first_old(growth, 16));

	for (size_t at = 0; at < growth->slices; at++) {
		const struct growth_slice slice = growth_track_at(track, at);

		stack->bytes[at] += slice.bytes;
		stack->most[at] += slice.most;
		stack->given[at] += slice.given;
		stack->kept[at] += slice.given - slice.gone;
	}
	stack->has_lifetime |= growth_frees(track, 0) > 0;
	stack->old_blocks += old;
	stack->old_frees += (double)old * samples;
	stack->late_frees += (double)growth_frees(track, growth_first_old(growth, 4)) * samples;
}

struct growth_stack growth_of_all(const struct growth *growth)
{
	struct growth_stack stack = {0};

	add_track(growth, &stack, &growth->sum);
	return stack;
}

struct growth_stack growth_of(const struct growth *growth, const uint32_t *numbers, size_t nr)
{
	struct growth_stack stack = {0};
	struct replaced_credit credit = {0};
	struct ages ages = {0};

	for (size_t i = 0; i < nr; i++) {
		struct replaced_credit more = replaced_of(&growth->replaced, numbers[i]);

		if (numbers[i] >= growth->nr)
			continue;
		add_track(growth, &stack, &growth->all[numbers[i]]);
		add_ages(&ages, &growth->all[numbers[i]]);
		add_credit(&credit, &more);
	}
	stack.lifetime_ns = median_of(&ages, 0);
	stack.old_age_ns = median_of(&ages, growth_first_old(growth, 16));
	set_replaced(growth, &credit, &stack);
	stack.others = credit.others;
	stack.unsized = growth->replaced.unsized_left;
	return stack;
}
