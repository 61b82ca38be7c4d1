/* heap_list.c - see heap_list.h */
#include "record/heap/heap_list.h"

#include <errno.h>
#include <string.h>

#include "array.h"

int heap_list_add(struct heap_list *list, const struct heap_block *block)
{
	if (list->nr >= HEAP_MOST_BLOCKS)
		return -E2BIG;
	if (grow_array(&list->v, list->nr, &list->room, sizeof(*list->v)))
		return -ENOMEM;
	list->v[list->nr++] = *block;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct heap_block *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

void heap_list_sort(struct heap_list *list)
{
	size_t kept = 0;

	if (list->nr)
		qsort(list->v, list->nr, sizeof(*list->v), by_address);
	for (size_t i = 0; i < list->nr; i++) {
		const struct heap_block *last = kept ? &list->v[kept - 1] : NULL;

		if (!last || list->v[i].address >= last->address + last->size)
			list->v[kept++] = list->v[i];
	}
	list->nr = kept;
}

size_t heap_list_behind(const struct heap_list *list, uint64_t address)
{
	size_t low = 0, high = list->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->v[middle].address + list->v[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct heap_block *heap_list_find(const struct heap_list *list, uint64_t address)
{
	size_t at = heap_list_behind(list, address);

	return at < list->nr && list->v[at].address == address ? &list->v[at] : NULL;
}

void heap_list_release(struct heap_list *list)
{
	free(list->v);
	*list = (struct heap_list){0};
}

uint32_t heap_sum(const uint8_t *bytes, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a, by words */

	for (; len >= 8; bytes += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	for (; len; bytes++, len--)
		sum = (sum ^ *bytes) * UINT64_C(0x100000001b3);
	return (uint32_t)(sum ^ sum >> 32);
}
