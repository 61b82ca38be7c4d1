/* hash_index.c - open addressing with linear probing; nothing is ever removed
 *
 * What is hashed comes from a trace, which may be made so that all of it meets in one slot.  So the
 * hash has a key that is another one in each run, and nothing may be printed in the order of slots.
 */
#include "report/base/hash_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/auxv.h>
#include <sys/random.h>

#include "report/base/array.h"

#define FIRST_SLOTS 64

struct hash_slot {
	uint32_t hash;	 /* the low half: spares most calls of equal() */
	uint32_t number; /* plus one; zero: empty */
};

/* Drawn once in a run; the last word is odd, and zero until then. */
static uint64_t key[4];

static void draw_key(void)
{
	/* early in the boot, or with no such call allowed: what the kernel gave this process */
	if (getrandom(key, sizeof(key), GRND_NONBLOCK) != sizeof(key)) {
		const void *given = (const void *)getauxval(AT_RANDOM);

		if (given)
			memcpy(key, given, 16);
		key[2] = key[0] ^ 0x9e3779b97f4a7c15;
	}
	key[3] |= 1;
}

/* Both halves of the product.  With secrets in both factors it is impossible to choose words that
 * collide. */
static uint64_t fold_product(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_word(uint64_t hash, uint64_t word)
{
	if (__builtin_expect(!key[3], 0))
		draw_key();
	return fold_product(fold_product(hash ^ key[0], word ^ key[1]) ^ key[2], key[3]);
}

uint64_t hash_address(uint64_t word)
{
	if (__builtin_expect(!key[3], 0))
		draw_key();
	return fold_product(word ^ key[1], key[3]);
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	hash = hash_word(hash, len);
	for (; len; len -= len < 8 ? len : 8, at += 8) {
		uint64_t word = 0;

		memcpy(&word, at, len < 8 ? len : 8);
		hash = hash_word(hash, word);
	}
	return hash;
}

uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text));
}

bool hash_index_find(const struct hash_index *index, const struct hash_query *query,
		     uint32_t *number)
{
	size_t mask = index->nr_slots - 1;

	if (!index->nr_slots)
		return false;
	for (size_t i = query->hash & mask; index->slots[i].number; i = (i + 1) & mask) {
		const struct hash_slot *slot = &index->slots[i];

		if (slot->hash == (uint32_t)query->hash &&
		    query->equal(query->things, slot->number - 1, query->key)) {
			*number = slot->number - 1;
			return true;
		}
	}
	return false;
}

static void place_slot(struct hash_slot *slots, size_t mask, struct hash_slot slot)
{
	size_t i = slot.hash & mask;

	while (slots[i].number)
		i = (i + 1) & mask;
	slots[i] = slot;
}

static int grow_slots(struct hash_index *index)
{
	size_t nr = index->nr_slots ? index->nr_slots * 2 : FIRST_SLOTS;
	struct hash_slot *slots;

	/* only 32 bits of the hash are kept, which is as many things as there are numbers for */
	slots = calloc(nr, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->nr_slots; i++)
		if (index->slots[i].number)
			place_slot(slots, nr - 1, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->nr_slots = nr;
	return 0;
}

int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t number)
{
	struct hash_slot slot = {.hash = (uint32_t)hash, .number = number + 1};

	if (number == UINT32_MAX)
		return -ENOMEM;
	if (index->nr_used >= index->nr_slots / 2 && grow_slots(index))
		return -ENOMEM;
	place_slot(index->slots, index->nr_slots - 1, slot);
	index->nr_used++;
	return 0;
}

int intern(struct intern *table, const struct hash_query *query, const void *thing, size_t size,
	   uint32_t *number)
{
	void *all;

	if (hash_index_find(&table->index, query, number))
		return 0;
	if (table->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(table->all, &table->room, table->nr + 1, size);
	if (!all)
		return -ENOMEM;
	table->all = all;
	*number = (uint32_t)table->nr;
	if (hash_index_add(&table->index, query->hash, *number))
		return -ENOMEM;
	memcpy((char *)all + table->nr++ * size, thing, size);
	return 1;
}

/* Things of @size bytes that begin with their pair. */
struct paired {
	const char *all;
	size_t size;
};

static bool same_pair(const void *things, uint32_t number, const void *key)
{
	const struct paired *paired = things;

	return !memcmp(paired->all + number * paired->size, key, PAIR_SIZE);
}

static struct hash_query query_for_pair(const struct paired *paired, const void *pair)
{
	uint32_t words[2];

	memcpy(words, pair, PAIR_SIZE);
	return (struct hash_query){
		.hash = hash_word(words[0], words[1]),
		.things = paired,
		.key = pair,
		.equal = same_pair,
	};
}

int intern_pair(struct intern *table, const void *thing, size_t size, uint32_t *number)
{
	struct paired paired = {table->all, size};
	struct hash_query query = query_for_pair(&paired, thing);

	return intern(table, &query, thing, size, number);
}

bool intern_find_pair(const struct intern *table, const void *pair, size_t size, uint32_t *number)
{
	struct paired paired = {table->all, size};
	struct hash_query query = query_for_pair(&paired, pair);

	return hash_index_find(&table->index, &query, number);
}

void intern_keep_pairs(struct intern *table, size_t size, bool (*keep)(void *arg, void *thing),
		       void *arg)
{
	struct paired paired = {table->all, size};
	char *all = table->all;
	size_t nr = 0;

	hash_index_clear(&table->index);
	for (size_t i = 0; i < table->nr; i++) {
		if (!keep(arg, all + i * size))
			continue;
		memmove(all + nr * size, all + i * size, size);
		hash_index_add(&table->index, query_for_pair(&paired, all + nr * size).hash,
			       (uint32_t)nr);
		nr++;
	}
	table->nr = nr;
}

void intern_release(struct intern *table)
{
	free(table->all);
	hash_index_release(&table->index);
	*table = (struct intern){0};
}

void hash_index_clear(struct hash_index *index)
{
	if (index->nr_slots)
		memset(index->slots, 0, index->nr_slots * sizeof(*index->slots));
	index->nr_used = 0;
}

void hash_index_release(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){0};
}
