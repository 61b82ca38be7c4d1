/* gap.c - see gap.h */
#include "record/inject/gap.h"

#include <string.h>

#define LOWEST	UINT64_C(0x10000)	 /* vm.mmap_min_addr, as a rule */
#define HIGHEST UINT64_C(0x7ffffffff000) /* of user space: four levels of page tables */

/* The farthest that a jump between [@at, @at + @bytes) and [@start, @end) can be. */
static uint64_t distance(uint64_t at, uint64_t bytes, uint64_t start, uint64_t end)
{
	uint64_t below = end > at ? end - at : 0;
	uint64_t above = at + bytes > start ? at + bytes - start : 0;

	return below > above ? below : above;
}

static bool is_named(const struct mlk_mapping *m, const char *name)
{
	return m && m->path && !strcmp(m->path, name);
}

uint64_t inject_gap(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes)
{
	uint64_t best = 0, least = INJECT_REACH;

	for (size_t i = 0; i <= maps->nr; i++) {
		const struct mlk_mapping *before = i ? &maps->v[i - 1] : NULL;
		const struct mlk_mapping *behind = i < maps->nr ? &maps->v[i] : NULL;
		uint64_t from = before ? before->end : LOWEST;
		uint64_t to = behind ? behind->start : HIGHEST;
		uint64_t at[2] = {from, to - bytes};

		if (from < LOWEST || to > HIGHEST || from >= to || to - from < bytes ||
		    is_named(before, "[heap]"))
			continue;
		/* a stack grows down from the end of its gap */
		for (int k = 0; k < (is_named(behind, "[stack]") ? 1 : 2); k++)
			if (distance(at[k], bytes, start, end) < least) {
				least = distance(at[k], bytes, start, end);
				best = at[k];
			}
	}
	return best;
}
