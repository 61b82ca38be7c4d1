/* hash_index.h - find the number of a thing by its hash; the things are kept by the caller */
#ifndef REPORT_HASH_INDEX_H
#define REPORT_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_slot;

/* All zero is an empty index. */
struct hash_index {
	struct hash_slot *slots;
	size_t nr_slots; /* zero or a power of two */
	size_t nr_used;
};

/* What is looked for: @equal says whether thing @number of @things is the one @key describes. */
struct hash_query {
	uint64_t hash;
	const void *things;
	const void *key;
	bool (*equal)(const void *things, uint32_t number, const void *key);
};

/* Look for what @query describes.  Returns true with its number in *@number, or false. */
bool hash_index_find(const struct hash_index *index, const struct hash_query *query,
		     uint32_t *number);

/* Add thing @number (below UINT32_MAX), which must not be there yet.  Returns 0 or -ENOMEM. */
int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t number);

/* Empty @index.  As many things as were there can then be added without more memory. */
void hash_index_clear(struct hash_index *index);

/* Distinct things of one size: an array that grows, and an index of it.  All zero is empty. */
struct intern {
	void *all;
	size_t nr, room;
	struct hash_index index;
};

/* The same with an array of @type, as members of the struct or union around it; intern() takes its
 * member table. */
#define INTERN_OF(type)                          \
	union {                                  \
		struct intern table;             \
		struct {                         \
			type *all;               \
			size_t nr, room;         \
			struct hash_index index; \
		};                               \
	}

/* Find what @query describes in @table, or add a copy of the @size bytes at @thing; the array may
 * move then.  *@number is its number.  Returns 1: it was added, 0: it was there, or -ENOMEM. */
int intern(struct intern *table, const struct hash_query *query, const void *thing, size_t size,
	   uint32_t *number);

#define PAIR_SIZE (2 * sizeof(uint32_t)) /* bytes that distinguish things of intern_pair() */

/* The same for things of which each begins with two uint32_t, as a process and a thread: those are
 * equal that have the same two. */
int intern_pair(struct intern *table, const void *thing, size_t size, uint32_t *number);

/* Look in a table of intern_pair() for the thing of @size bytes that has the two at @pair.  Returns
 * true with its number in *@number, or false. */
bool intern_find_pair(const struct intern *table, const void *pair, size_t size, uint32_t *number);

/* Keep of a table of intern_pair() only the things of @size bytes of which @keep() says so, with
 * @arg; what the others hold is its to release.  Numbers change. */
void intern_keep_pairs(struct intern *table, size_t size, bool (*keep)(void *arg, void *thing),
		       void *arg);

/* Release what @table holds, but not what its things do, and leave it empty. */
void intern_release(struct intern *table);

/* Release what @index holds and leave it empty. */
void hash_index_release(struct hash_index *index);

/* The hash of @word, after what @hash already holds (anything to begin with).  It is another one in
 * each run, so nothing that is printed may depend on it. */
uint64_t hash_word(uint64_t hash, uint64_t word);

/* The same of @word alone, such as an address: half the work. */
uint64_t hash_address(uint64_t word);

/* The hash of @len bytes at @bytes, after what @hash already holds. */
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len);

/* The hash of the string @text, after what @hash already holds. */
uint64_t hash_text(uint64_t hash, const char *text);

#endif
