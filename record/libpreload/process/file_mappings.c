/* file_mappings.c - where files are mapped, so that mremap of one is not taken for an allocation
 *
 * A table without locks.  A mapping that finds no place in it counts as memory of the program's own
 * once it is moved: then it would be shown as a block, no worse.
 */
#include "record/libpreload/preload.h"

#define SLOTS 4096u
#define TRIES 32u

static uint64_t slots[SLOTS]; /* addresses; 0: free */

static uint64_t *slot(uint64_t addr, uint32_t i)
{
	uint32_t first = (uint32_t)((addr >> 12) * 0x9e3779b97f4a7c15ull >> 52);

	return &slots[(first + i) % SLOTS];
}

/* Put @to in the place of @from near where @addr belongs.  False: there was none. */
static bool replace(uint64_t addr, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t was = from;

		if (__atomic_compare_exchange_n(slot(addr, i), &was, to, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void preload_file_mapped(const void *addr)
{
	replace((uint64_t)addr, 0, (uint64_t)addr);
}

bool preload_file_unmapped(const void *addr)
{
	return replace((uint64_t)addr, (uint64_t)addr, 0);
}
