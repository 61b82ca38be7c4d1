/* alloc_threads.c - see alloc_threads.h */
#include "report/context/alloc_threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/text.h"

struct alloc_threads {
	const struct thread_names *threads;
	struct taker *all; /* by stack once alloc_threads_new() has returned */
	size_t nr, room;
	struct hash_index index; /* only in alloc_threads_new() */
	int err;
};

static bool is_taker(const void *things, uint32_t number, const void *key)
{
	const struct taker *taker = &((const struct taker *)things)[number], *wanted = key;

	return taker->stack == wanted->stack && taker->tid == wanted->tid;
}

/* The taker that is like @wanted, with what it has so far; NULL: memory is short. */
static struct taker *taker_like(struct alloc_threads *takers, const struct taker *wanted)
{
	struct hash_query query = {
		.hash = hash_word(wanted->stack, wanted->tid),
		.things = takers->all,
		.key = wanted,
		.equal = is_taker,
	};
	struct taker *all;
	uint32_t number;

	if (hash_index_find(&takers->index, &query, &number))
		return &takers->all[number];
	all = array_grow(takers->all, &takers->room, takers->nr + 1, sizeof(*all));
	if (!all)
		return NULL;
	takers->all = all;
	if (hash_index_add(&takers->index, query.hash, (uint32_t)takers->nr))
		return NULL;
	all[takers->nr] = *wanted;
	return &all[takers->nr++];
}

static void add_block(void *arg, const struct live_block *block)
{
	struct alloc_threads *takers = arg;
	struct taker wanted = {.stack = block->stack, .tgid = block->tgid, .tid = block->tid};
	struct live_amount amount = sampling_amount(block);
	struct taker *taker;

	if (takers->err)
		return;
	taker = taker_like(takers, &wanted);
	if (!taker) {
		takers->err = -ENOMEM;
		return;
	}
	taker->amount.blocks += amount.blocks;
	taker->amount.bytes += amount.bytes;
}

static int compare(const void *a, const void *b)
{
	const struct taker *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->amount.bytes != y->amount.bytes)
		return x->amount.bytes > y->amount.bytes ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

int alloc_threads_new(struct alloc_threads **out, const struct replay *leaks)
{
	struct alloc_threads *takers = calloc(1, sizeof(*takers));
	int err;

	*out = takers;
	if (!takers)
		return -ENOMEM;
	takers->threads = replay_chosen(leaks)->threads;
	chosen_each(replay_chosen(leaks), replay_live(leaks), add_block, takers);
	hash_index_release(&takers->index);
	if (takers->nr)
		qsort(takers->all, takers->nr, sizeof(*takers->all), compare);
	err = takers->err;
	if (err) {
		alloc_threads_free(takers);
		*out = NULL;
	}
	return err;
}

const struct taker *alloc_threads_of(const struct alloc_threads *takers, uint32_t number,
				     size_t *nr)
{
	size_t from = 0, to = takers->nr;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (takers->all[middle].stack < number)
			from = middle + 1;
		else
			to = middle;
	}
	for (to = from; to < takers->nr && takers->all[to].stack == number;)
		to++;
	*nr = to - from;
	return takers->all + from;
}

const char *alloc_threads_name(const struct alloc_threads *takers, const struct taker *taker)
{
	return thread_names_get(takers->threads, taker->tgid, taker->tid);
}

void alloc_threads_print(FILE *out, const struct alloc_threads *takers, uint32_t number)
{
	char buf[TEXT_NUMBER_MAX];
	const char *name;
	size_t nr;
	const struct taker *first = alloc_threads_of(takers, number, &nr);

	if (!nr)
		return;
	if (nr == 1)
		fputs(", by thread ", out);
	else
		fprintf(out, ", by %s threads, most by ", text_number(buf, nr));
	name = alloc_threads_name(takers, first);
	fprintf(out, "%" PRIu32 "%s", first->tid, *name ? " " : "");
	text_print(out, name);
	if (nr > 1)
		fprintf(out, " (%s %s)", text_number(buf, first->amount.blocks),
			text_blocks(first->amount.blocks));
}

void alloc_threads_free(struct alloc_threads *takers)
{
	if (!takers)
		return;
	hash_index_release(&takers->index);
	free(takers->all);
	free(takers);
}
