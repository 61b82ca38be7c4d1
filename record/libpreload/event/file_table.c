/* file_table.c - where files are mapped, so that mremap of one is not taken for an allocation
 *
 * A table without locks.  A mapping that finds no place in it counts as memory of the program's own
 * once it is moved: then it would be shown as a block, no worse.
 */
#include "record/libpreload/preload.h"

#define FILE_SLOTS 4096u
#define FILE_TRIES 32u

static uint64_t file_slots[FILE_SLOTS]; /* addresses; 0: free */

static uint64_t *file_slot(uint64_t addr, uint32_t i)
{
	uint32_t first = (uint32_t)((addr >> 12) * 0x9e3779b97f4a7c15ull >> 52);

	return &file_slots[(first + i) % FILE_SLOTS];
}

/* Put @to in the place of @from near where @addr belongs.  False: there was none. */
static bool replace_file(uint64_t addr, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < FILE_TRIES; i++) {
		uint64_t was = from;

		if (__atomic_compare_exchange_n(file_slot(addr, i), &was, to, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void preload_note_file(const void *addr)
{
	replace_file((uint64_t)addr, 0, (uint64_t)addr);
}

bool preload_forget_file(const void *addr)
{
	return replace_file((uint64_t)addr, (uint64_t)addr, 0);
}
