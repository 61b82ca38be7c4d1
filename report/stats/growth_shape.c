/* growth_shape.c - see growth_shape.h
 *
 * Of a leak, blocks stay however old they are: of those allocated in the first quarter of the time
 * as large a share is left as of those allocated in the second.  Of a cache or a store of sessions
 * less is left, because old blocks are freed, too.
 */
#include "report/stats/growth_shape.h"

#include <math.h>
#include <stdbool.h>

#define LEAST_NS    1000000000u
#define SIGNIFICANT 3.0	 /* standard errors */
#define CERTAIN	    8.0	 /* difference of the logarithms of two likelihoods */
#define LATE	    0.1	 /* share of the old blocks that were freed at last */
#define SOME_LATE   0.01 /* the same, from which on they may all be freed some time */
#define FEW	    3	 /* blocks, which may be chance */
#define REPLACED    0.8	 /* share of what is outstanding */
#define EXPLAINED   0.3	 /* share of the growth */
#define FILLING	    1.05 /* times what there was at half of the time, and by chance: */
#define BY_CHANCE   2.0	 /* standard errors of what is left */

static const struct {
	const char *name, *meaning;
} shapes[] = {
	[SHAPE_GROWING] = {"growing",
			   "more was outstanding after each quarter of the recording than "
			   "before it: as a leak does"},
	[SHAPE_UNCLEAR] = {"unclear",
			   "it grew, but this recording is too short, or too small a part was "
			   "chosen of it, to tell a leak from a cache: record for longer, or all"},
	[SHAPE_LATE] = {"late",
			"nothing before the last quarter: too new to tell; record for longer"},
	[SHAPE_UNEVEN] = {"uneven",
			  "it grew, but not all the time: a leak in bursts, or a cache that "
			  "fills"},
	[SHAPE_FILLING] = {"filling",
			   "it grew, but its old blocks are freed, too: a cache that fills"},
	[SHAPE_REPLACING] = {"replacing",
			     "it grew, but as many blocks were freed that are older than the "
			     "recording"},
	[SHAPE_STEADY] = {"steady", "no more at the end than at half of the time, and blocks are "
				    "freed: a cache or a working set"},
	[SHAPE_ONCE] = {"once",
			"no more at the end than at half of the time, and hardly a block is "
			"freed: made once"},
};

const char *growth_shape_name(enum growth_shape shape)
{
	return shapes[shape].name;
}

const char *growth_shape_meaning(enum growth_shape shape)
{
	return shapes[shape].meaning;
}

static size_t slice_at(const struct growth *growth, uint64_t time_ns)
{
	uint64_t start = growth->start_ns, last = growth->slices - 1;
	uint64_t slice = time_ns > start ? (time_ns - start) / growth->width_ns : 0;

	return slice < last ? slice : last;
}

/* The end of the time in which what was chosen can have been allocated. */
static uint64_t end_of(const struct chosen *chosen)
{
	return chosen->given_to_ns < chosen->end_ns ? chosen->given_to_ns : chosen->end_ns;
}

bool growth_time_is_short(const struct chosen *chosen)
{
	return end_of(chosen) < chosen->start_ns + LEAST_NS;
}

bool growth_shapes_tell(const struct chosen *chosen)
{
	return !growth_time_is_short(chosen) && chosen->given_from_ns <= chosen->start_ns;
}

struct growth_span growth_span_of(const struct growth *growth, const struct chosen *chosen)
{
	uint64_t from_ns =
		chosen->given_from_ns > growth->first_ns ? chosen->given_from_ns : growth->first_ns;
	size_t first = slice_at(growth, from_ns);
	size_t last = slice_at(growth, chosen->given_to_ns);

	uint64_t until_ns = growth->start_ns + (last + 1) * growth->width_ns;
	uint64_t end_ns = end_of(chosen);

	return (struct growth_span){
		.first = first,
		.nr = last >= first ? last - first + 1 : 1,
		.missing_ns = end_ns < until_ns && until_ns - end_ns < growth->width_ns
				      ? until_ns - end_ns
				      : 0,
	};
}

/* What was outstanding after so many quarters of the time. */
static uint64_t after(const struct growth_stack *stack, const struct growth_span *span,
		      size_t quarters)
{
	size_t end = span->first + span->nr * quarters / 4;

	return end ? stack->bytes[end - 1] : 0;
}

/* How much of it was in the place of older blocks that had been freed then. */
static double replaced_after(const struct growth_stack *stack, const struct growth_span *span,
			     size_t quarters)
{
	size_t end = span->first + span->nr * quarters / 4;

	return end ? stack->replaced_then[end - 1] : 0;
}

/* Blocks of one quarter of the time: allocated, and of these kept. */
struct cohort {
	double given, kept;
};

static struct cohort cohort_of(const struct growth_stack *stack, const struct growth_span *span,
			       size_t quarter)
{
	struct cohort cohort = {0, 0};

	for (size_t at = span->first + span->nr * quarter / 4;
	     at < span->first + span->nr * (quarter + 1) / 4; at++) {
		cohort.given += stack->given[at];
		cohort.kept += stack->kept[at];
	}
	return cohort;
}

static double share_kept(const struct cohort *c)
{
	return c->given > 0 ? c->kept / c->given : 0;
}

/* By how many standard errors the share that is left of @a is below that of @b. */
static double below(const struct cohort *a, const struct cohort *b)
{
	double share, variance;

	if (a->given <= 0 || b->given <= 0)
		return 0;
	share = (a->kept + b->kept) / (a->given + b->given);
	variance = share * (1 - share) * (1 / a->given + 1 / b->given);
	return variance > 0 ? (share_kept(b) - share_kept(a)) / sqrt(variance) : 0;
}

/* How likely what is left of @c is if each block of it is with this @chance: the logarithm. */
static double likelihood(const struct cohort *c, double chance)
{
	double p = fmin(fmax(chance, 1e-9), 1 - 1e-9);

	return c->kept * log(p) + (c->given - c->kept) * log(1 - p);
}

/* How likely the first three quarters are if blocks of the first two stay alike. */
static double likelihood_of_stay(const struct cohort q[4])
{
	double share = (q[0].kept + q[1].kept) / (q[0].given + q[1].given);

	return likelihood(&q[0], share) + likelihood(&q[1], share) +
	       likelihood(&q[2], share_kept(&q[2]));
}

/* The same if each quarter takes the same share of what is left. */
static double likelihood_of_decay(const struct cohort q[4])
{
	double first = fmax(share_kept(&q[0]), 0.5 / q[0].given);
	double third = fmax(share_kept(&q[2]), 0.5 / q[2].given);
	double ratio = sqrt(third / first);
	double second = cbrt(first * fmax(share_kept(&q[1]), 0.5 / q[1].given) * third);

	return likelihood(&q[0], second / ratio) + likelihood(&q[1], second) +
	       likelihood(&q[2], second * ratio);
}

/* Does as much of the first quarter stay as of the second, and not by decay? */
static bool is_plateau(const struct cohort q[4])
{
	return q[0].given > 0 && q[1].given > 0 && q[2].given > 0 &&
	       below(&q[0], &q[1]) <= SIGNIFICANT &&
	       likelihood_of_stay(q) > likelihood_of_decay(q) + CERTAIN;
}

/* Do old blocks stay?  If some of them are freed, only as many blocks of the first quarter being
 * left as of the second can speak for it. */
static bool old_ones_stay(const struct growth_stack *stack, const struct cohort q[4])
{
	double lost = (share_kept(&q[2]) - share_kept(&q[0])) * q[0].given;
	double old = q[0].kept + q[1].kept, late = stack->late_frees;

	if (q[0].given + q[1].given > 0 && old <= 0)
		return false;
	if (q[0].given > 0 && q[1].given > 0 && q[2].given > 0 && late >= LATE * (late + old))
		return is_plateau(q);
	if (below(&q[0], &q[2]) <= SIGNIFICANT)
		return true;
	/* fewer were kept then, but none of them was freed when it was old */
	return stack->old_frees < lost / 2 ||
	       (q[1].given > 0 && likelihood_of_stay(q) >= likelihood_of_decay(q));
}

/* Is what is left of the second and third quarter as much as the growth in them? */
static bool explains_growth(const struct growth_stack *stack, const struct growth_span *span,
			    const struct cohort q[4])
{
	double all = q[0].kept + q[1].kept + q[2].kept + q[3].kept;
	double grown = (double)after(stack, span, 3) - (double)after(stack, span, 1);
	double bytes = all > 0 ? (double)after(stack, span, 4) / all : 0;

	return (q[1].kept + q[2].kept) * bytes >= EXPLAINED * grown;
}

static bool is_leak_by_age(const struct growth_stack *stack, const struct growth_span *span)
{
	struct cohort q[4];

	for (size_t i = 0; i < 4; i++)
		q[i] = cohort_of(stack, span, i);
	return old_ones_stay(stack, q) && explains_growth(stack, span, q);
}

/* Most blocks stay, but some were freed when they were nearly as old as the recording: a cache
 * that needs far longer until it is full does so, too. */
static bool is_unclear(const struct growth_stack *stack, const struct growth_span *span)
{
	double late = stack->late_frees, old;
	struct cohort q[4];

	for (size_t i = 0; i < 4; i++)
		q[i] = cohort_of(stack, span, i);
	old = q[0].kept + q[1].kept;
	return late >= FEW && late >= SOME_LATE * (late + old) && !is_plateau(q);
}

static bool is_replacing(const struct growth_stack *stack, const struct growth_span *span)
{
	uint64_t now = after(stack, span, 4);

	return stack->replaced.bytes && (double)stack->replaced.bytes >= REPLACED * (double)now;
}

bool growth_may_replace(const struct growth_stack *stack)
{
	return stack->others && (double)stack->unsized >= REPLACED * (double)stack->others;
}

/* Is there more than at half of the time, and not just by chance? */
static bool has_filled(const struct growth_stack *stack, const struct growth_span *span)
{
	double now = (double)after(stack, span, 4), half = (double)after(stack, span, 2), kept = 1;

	for (size_t i = 0; i < 4; i++)
		kept += cohort_of(stack, span, i).kept;
	return now > half * (FILLING + BY_CHANCE / sqrt(kept));
}

enum growth_shape growth_shape_of(const struct growth_stack *stack, const struct growth_span *span,
				  double freed)
{
	uint64_t q1 = after(stack, span, 1), q2 = after(stack, span, 2);
	uint64_t q3 = after(stack, span, 3), q4 = after(stack, span, 4);
	bool leaks = is_leak_by_age(stack, span);

	if (q4 > q2 && is_replacing(stack, span))
		return SHAPE_REPLACING;
	if (q1 < q2 && q2 < q3 && q3 < q4 && leaks)
		return is_unclear(stack, span) || growth_may_replace(stack) ? SHAPE_UNCLEAR
									    : SHAPE_GROWING;
	if (!q1 && !q2 && !q3)
		return SHAPE_LATE;
	if (q4 <= q2)
		return freed < 0.1 ? SHAPE_ONCE : SHAPE_STEADY;
	if (leaks)
		return SHAPE_UNEVEN;
	return has_filled(stack, span) ? SHAPE_FILLING : SHAPE_STEADY;
}

double growth_rate_of(const struct growth_stack *stack, const struct growth_span *span,
		      uint64_t width_ns)
{
	uint64_t ns = (span->nr - span->nr / 2) * width_ns;
	double seconds = (double)(ns > span->missing_ns ? ns - span->missing_ns : width_ns) / 1e9;
	double more = (double)after(stack, span, 4) - (double)after(stack, span, 2);
	double replaced = replaced_after(stack, span, 4) - replaced_after(stack, span, 2);

	return (more > 0 ? fmax(more - replaced, 0) : more) / seconds;
}
