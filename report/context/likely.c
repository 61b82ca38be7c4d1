/* likely.c - see likely.h */
#include "report/context/likely.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"

#define LEAST 5 /* blocks that must be alike */

/* What blocks are compared by, from the best to the last. */
enum likeness { LIKE_ALL, LIKE_FIRST, LIKE_SIZE, LIKENESSES };

/* A block of which all is known. */
struct known {
	uint32_t tgid, stack; /* LIKELY_NONE: it did not live to the end */
	uint64_t address, time_ns, size;
	uint64_t keys[LIKENESSES];
};

/* How many blocks of one key a stack has allocated. */
struct count {
	uint64_t key, blocks;
	uint32_t stack;
};

/* Blocks that are alike: how many there are, and of the two stacks that have most. */
struct kind {
	uint64_t key, blocks, most, second;
	uint32_t stack; /* that has most */
};

struct likely {
	size_t nr_stacks;
	struct known *known; /* by process and address */
	size_t nr, room;
	struct kinds {
		struct kind *all; /* by key */
		size_t nr, room;
	} kinds[LIKENESSES];
};

static void make_keys(uint64_t keys[LIKENESSES], const struct older_block *block)
{
	uint64_t size = hash_word(block->tgid, block->size);
	const char *path = block->first_path ? block->first_path : "";
	uint64_t first = hash_word(hash_text(0, path), block->first_offset);

	keys[LIKE_SIZE] = hash_word(size, LIKE_SIZE);
	keys[LIKE_FIRST] = hash_word(keys[LIKE_SIZE], first);
	keys[LIKE_ALL] = hash_word(keys[LIKE_FIRST], block->referrer);
}

static int add_known(void *arg, const struct older_block *block)
{
	struct likely *l = arg;
	struct known known = {.tgid = block->tgid,
			      .stack = LIKELY_NONE,
			      .address = block->address,
			      .time_ns = block->time_ns,
			      .size = block->size};

	make_keys(known.keys, block);
	return array_append(&l->known, &l->nr, &l->room, &known, sizeof(known));
}

static int by_address(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Note the stack of a block that lives. */
static void note_stack(void *arg, const struct live_block *block)
{
	struct likely *l = arg;
	const struct known key = {.tgid = block->tgid, .address = block->addr};
	struct known *known;

	if (!block->known || block->mapped || block->stack >= l->nr_stacks)
		return;
	known = bsearch(&key, l->known, l->nr, sizeof(key), by_address);
	if (known && known->time_ns == block->time_ns)
		known->stack = block->stack;
}

static int by_key(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int add_kind(struct kinds *kinds, const struct count *counts, size_t nr)
{
	struct kind kind = {.key = counts->key};

	for (size_t i = 0; i < nr; i++) {
		kind.blocks += counts[i].blocks;
		if (counts[i].blocks > kind.most) {
			kind.second = kind.most;
			kind.most = counts[i].blocks;
			kind.stack = counts[i].stack;
		} else if (counts[i].blocks > kind.second) {
			kind.second = counts[i].blocks;
		}
	}
	return array_append(&kinds->all, &kinds->nr, &kinds->room, &kind, sizeof(kind));
}

/* Put the blocks that are alike together. */
static int make_kinds(struct likely *l, enum likeness likeness)
{
	struct count *counts = calloc(l->nr + 1, sizeof(*counts));
	size_t nr = 0, kept = 0, end;
	int err = counts ? 0 : -ENOMEM;

	for (size_t i = 0; i < l->nr && !err; i++)
		if (l->known[i].stack != LIKELY_NONE)
			counts[nr++] =
				(struct count){l->known[i].keys[likeness], 1, l->known[i].stack};
	if (nr)
		qsort(counts, nr, sizeof(*counts), by_key);
	for (size_t i = 0; i < nr; i++)
		if (kept && !by_key(&counts[kept - 1], &counts[i]))
			counts[kept - 1].blocks++;
		else
			counts[kept++] = counts[i];
	for (size_t i = 0; i < kept && !err; i = end) {
		for (end = i + 1; end < kept && counts[end].key == counts[i].key; end++)
			;
		err = add_kind(&l->kinds[likeness], &counts[i], end - i);
	}
	free(counts);
	return err;
}

int likely_new(struct likely **out, const struct replay *leaks, const struct verdicts *verdicts)
{
	struct likely *l = calloc(1, sizeof(*l));
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	l->nr_stacks = leaks->stacks->nr;
	err = verdicts_each_known(verdicts, add_known, l);
	if (!err && l->nr) {
		qsort(l->known, l->nr, sizeof(*l->known), by_address);
		live_each(leaks->live, note_stack, l);
	}
	for (int i = 0; i < LIKENESSES && !err; i++)
		err = make_kinds(l, (enum likeness)i);
	if (err)
		likely_free(l);
	else
		*out = l;
	return err;
}

static const struct kind *find_kind(const struct kinds *kinds, uint64_t key)
{
	size_t low = 0, high = kinds->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kinds->all[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < kinds->nr && kinds->all[low].key == key ? &kinds->all[low] : NULL;
}

/* The likely stack of a block with these keys.  @own: the stack that it has itself, as a known one,
 * which does not count then. */
static uint32_t guess(const struct likely *l, const uint64_t keys[LIKENESSES], uint32_t own)
{
	for (int i = 0; i < LIKENESSES; i++) {
		const struct kind *kind = find_kind(&l->kinds[i], keys[i]);
		uint64_t itself = own != LIKELY_NONE, most;

		if (!kind || kind->blocks - itself < LEAST)
			continue;
		most = kind->most - (kind->stack == own ? itself : 0);
		return most > kind->second && most > (kind->blocks - itself) / 2 ? kind->stack
										 : LIKELY_NONE;
	}
	return LIKELY_NONE;
}

uint32_t likely_stack(const struct likely *l, const struct older_block *block)
{
	uint64_t keys[LIKENESSES];

	make_keys(keys, block);
	return guess(l, keys, LIKELY_NONE);
}

void likely_test(const struct likely *l, struct live_amount *guessed, struct live_amount *right)
{
	*guessed = *right = (struct live_amount){0};
	for (size_t i = 0; i < l->nr; i++) {
		const struct known *known = &l->known[i];
		const struct live_amount amount = {1, known->size};
		uint32_t stack = known->stack == LIKELY_NONE ? LIKELY_NONE
							     : guess(l, known->keys, known->stack);

		if (stack == LIKELY_NONE)
			continue;
		live_amount_add(guessed, amount);
		if (stack == known->stack)
			live_amount_add(right, amount);
	}
}

void likely_free(struct likely *l)
{
	for (int i = 0; l && i < LIKENESSES; i++)
		free(l->kinds[i].all);
	if (l)
		free(l->known);
	free(l);
}
