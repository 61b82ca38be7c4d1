/* dict.h - a table from 64-bit keys to small numbers, emptied with each chunk */
#ifndef MLK_DICT_H
#define MLK_DICT_H

#include <stddef.h>
#include <stdint.h>

/* A key and its number. */
struct mlk_dict_slot {
	uint64_t key;
	uint32_t value; /* 0: free */
	uint32_t round; /* of the dictionary when it was set; an older one means free */
};

/* All zero: an empty table. */
struct mlk_dict {
	struct mlk_dict_slot *slots; /* open addressing */
	size_t nr, room;	     /* room is a power of two */
	uint32_t round;
};

/* Empty the table; its memory stays. */
void mlk_dict_reset(struct mlk_dict *d);
void mlk_dict_release(struct mlk_dict *d);

/* The slot at which looking for @key begins; there must be slots. */
static inline size_t mlk_dict_first(const struct mlk_dict *d, uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (d->room - 1);
}

/* @key will be looked for soon: what that needs of memory may come meanwhile.  A function that only
 * calls __builtin_prefetch() seems to do nothing, and gcc leaves out calls of it: hence the asm. */
static inline void mlk_dict_expect(const struct mlk_dict *d, uint64_t key)
{
	if (d->room)
		__builtin_prefetch(&d->slots[mlk_dict_first(d, key)], 1);
	__asm__ volatile("");
}

/* The place of @key's value, 0 if it is new; NULL when out of memory.  Valid until the next call.
 */
uint32_t *mlk_dict_at(struct mlk_dict *d, uint64_t key);

/* The value of @key, or 0. */
uint32_t mlk_dict_get(const struct mlk_dict *d, uint64_t key);

#endif
