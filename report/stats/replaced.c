/* replaced.c - see replaced.h */
#include "report/stats/replaced.h"

#include <errno.h>
#include <stdlib.h>

#define TURNOVER 0.02 /* share of blocks from which on a stack frees its own */
#define NEARNESS 0.3  /* share of blocks that are next to a free of an older one */

/* Allocators round sizes up; four classes from each power of two to the next are as coarse. */
static uint32_t class_of(uint64_t size)
{
	uint64_t rounded = size < UINT64_MAX / 2 ? (size + 8 + 15) & ~15ull : size;
	uint32_t log2 = rounded < 32 ? 5 : 63 - (uint32_t)__builtin_clzll(rounded);

	return log2 * 4 + (uint32_t)(rounded >> (log2 - 2) & 3);
}

static struct replaced_pair *pair_of(struct replaced *replaced, uint32_t stack, uint32_t class)
{
	const struct replaced_pair key = {.stack = stack, .class = class};
	uint32_t number;

	if (intern_pair(&replaced->table, &key, sizeof(key), &number) >= 0)
		return &replaced->all[number];
	replaced->failed = true;
	return NULL;
}

static void note_time(struct replaced_times *times, size_t slice, uint64_t blocks)
{
	times->then[slice] += (uint32_t)blocks;
	times->blocks += blocks;
}

/* A free is next to what its thread allocated before it; or else to what took the hole. */
void replaced_changed(struct replaced *replaced, const struct live_change *change, size_t slice)
{
	const struct live_block *older = change->older;
	uint32_t class = class_of(change->block->size);
	bool before = older->known && class_of(older->size) == class;
	struct replaced_pair *pair =
		pair_of(replaced, before ? older->stack : change->block->stack, class);

	note_time(&replaced->older[class], slice, change->more.blocks);
	if (pair)
		pair->paired += change->more.blocks;
}

static void widen_times(struct replaced_times *times)
{
	for (size_t at = 0; at < REPLACED_SLICES; at++)
		times->then[at] = at < REPLACED_SLICES / 2
					  ? times->then[2 * at] + times->then[2 * at + 1]
					  : 0;
}

void replaced_widen(struct replaced *replaced)
{
	for (size_t class = 0; class < REPLACED_CLASSES; class ++)
		if (replaced->older[class].blocks)
			widen_times(&replaced->older[class]);
}

static void note_unsized(void *arg, const struct live_block *block)
{
	struct replaced *replaced = arg;
	struct replaced_pair *pair =
		block->known ? pair_of(arg, block->stack, class_of(block->size)) : NULL;
	uint64_t start = replaced->start_ns, slice;

	if (!pair)
		return;
	slice = block->time_ns > start ? (block->time_ns - start) / replaced->width_ns : 0;
	note_time(&replaced->unsized, slice < REPLACED_SLICES ? slice : REPLACED_SLICES - 1, 1);
	pair->unsized++;
}

static void note_outstanding(void *arg, const struct live_block *block)
{
	struct replaced_pair *pair =
		block->mapped ? NULL : pair_of(arg, block->stack, class_of(block->size));

	if (pair)
		live_amount_add(&pair->amount, sampling_amount(block));
}

/* What a stack's claim to frees of older blocks rests on. */
struct claim {
	const struct replaced_pair *pair;
	double turnover, nearness;
};

static struct claim claim_of(const struct replaced_pair *pair, double turnover)
{
	double blocks = (double)(pair->amount.blocks ? pair->amount.blocks : 1);

	return (struct claim){
		.pair = pair,
		.turnover = turnover >= TURNOVER ? turnover : 0,
		.nearness = (double)(pair->paired + pair->unsized) / blocks,
	};
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->pair->class != y->pair->class)
		return x->pair->class < y->pair->class ? -1 : 1;
	if (x->turnover != y->turnover)
		return x->turnover > y->turnover ? -1 : 1;
	if (x->nearness != y->nearness)
		return x->nearness > y->nearness ? -1 : 1;
	return x->pair->stack < y->pair->stack ? -1 : 1;
}

/* So many @bytes of @credit are in the place of blocks that were freed at such @times. */
static void spread(struct replaced_credit *credit, const struct replaced_times *times, double bytes)
{
	for (size_t at = 0; at < REPLACED_SLICES && times->blocks; at++)
		credit->then[at] += (float)(bytes * times->then[at] / (double)times->blocks);
}

/* Give @claim what is left of its class, and of those without a size what is next to it or, if it
 * frees its own blocks, any. */
static void give_credit(struct replaced *replaced, const struct claim *claim, uint64_t *unsized)
{
	const struct replaced_pair *pair = claim->pair;
	uint64_t *left = &replaced->left[pair->class], want = pair->amount.blocks;
	uint64_t sized = want < *left ? want : *left, rest = want - sized;
	uint64_t others =
		claim->turnover > 0 && *unsized > pair->unsized ? *unsized : pair->unsized;
	double bytes = want ? (double)pair->amount.bytes / (double)want : 0;
	struct replaced_credit *credit;

	credit = &replaced->credit[pair->stack];
	if (!want || (claim->turnover == 0 && claim->nearness < NEARNESS)) {
		credit->others += want;
		return;
	}
	rest = rest < others ? rest : others;
	*left -= sized;
	*unsized -= rest < *unsized ? rest : *unsized;
	credit->others += want - sized - rest;
	credit->amount.blocks += sized + rest;
	credit->amount.bytes += (uint64_t)(bytes * (double)(sized + rest));
	spread(credit, &replaced->older[pair->class], bytes * (double)sized);
	spread(credit, &replaced->unsized, bytes * (double)rest);
}

int replaced_finish(struct replaced *replaced, const struct live *live, const struct chosen *chosen,
		    const double *turnover, size_t nr_stacks, uint64_t unsized)
{
	struct claim *claims;
	size_t nr = 0;

	for (size_t class = 0; class < REPLACED_CLASSES; class ++)
		replaced->left[class] = replaced->older[class].blocks;
	live_each_older(live, note_unsized, replaced);
	chosen_each(chosen, live, note_outstanding, replaced);
	claims = calloc(replaced->nr + 1, sizeof(*claims));
	replaced->credit = calloc(nr_stacks + 1, sizeof(*replaced->credit));
	if (!claims || !replaced->credit || replaced->failed) {
		free(claims);
		return -ENOMEM;
	}
	replaced->nr_credit = nr_stacks;
	for (size_t i = 0; i < replaced->nr; i++) {
		const struct replaced_pair *pair = &replaced->all[i];

		if (pair->stack < nr_stacks)
			claims[nr++] = claim_of(pair, turnover[pair->stack]);
	}
	qsort(claims, nr, sizeof(*claims), compare_claims);
	for (size_t i = 0; i < nr; i++)
		give_credit(replaced, &claims[i], &unsized);
	replaced->unsized_left = unsized;
	free(claims);
	return 0;
}

struct replaced_credit replaced_of(const struct replaced *replaced, uint32_t stack)
{
	return stack < replaced->nr_credit ? replaced->credit[stack] : (struct replaced_credit){0};
}

void replaced_release(struct replaced *replaced)
{
	intern_release(&replaced->table);
	free(replaced->credit);
	*replaced = (struct replaced){0};
}
