/* eval_code.c - see eval_code.h */
#include "record/interpreter/eval_code.h"

#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "record/module/elffile.h"

#define MAX_RANGES 64 /* that jumps are counted of */
#define LEAST	   3  /* jumps; bytes that look like one are rare */

/* Jumps that lead to a range. */
struct votes {
	struct mlk_code_range range;
	unsigned int nr;
};

/* The range of call frame information that holds @addr.  False: none does. */
static bool find_range(Dwarf_CFI *cfi, uint64_t addr, struct mlk_code_range *range)
{
	Dwarf_Frame *frame = NULL;
	bool found = !dwarf_cfi_addrframe(cfi, addr, &frame) &&
		     dwarf_frame_info(frame, &range->start, &range->end, NULL) >= 0;

	free(frame);
	return found;
}

/* Count a jump to @addr. */
static void vote(Dwarf_CFI *cfi, struct votes *all, size_t *nr, uint64_t addr)
{
	struct mlk_code_range range;

	for (size_t i = 0; i < *nr; i++)
		if (addr >= all[i].range.start && addr < all[i].range.end) {
			all[i].nr++;
			return;
		}
	if (*nr < MAX_RANGES && find_range(cfi, addr, &range))
		all[(*nr)++] = (struct votes){range, 1};
}

/* The target of the jump, with 4 bytes of distance, whose instruction may be at @code, an address
 * of @at.  0: it is none. */
static uint64_t jump_target(const uint8_t *code, uint64_t at)
{
	int32_t distance;

	if (code[0] == 0xe9) { /* jmp */
		memcpy(&distance, code + 1, sizeof(distance));
		return at + 5 + (uint64_t)(int64_t)distance;
	}
	if (code[0] != 0x0f || (code[1] & 0xf0) != 0x80) /* jcc */
		return 0;
	memcpy(&distance, code + 2, sizeof(distance));
	return at + 6 + (uint64_t)(int64_t)distance;
}

bool eval_code_cold(Elf *elf, uint64_t start, uint64_t end, struct mlk_code_range *cold)
{
	struct votes all[MAX_RANGES];
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	size_t nr = 0, len = 0, best = 0;
	const uint8_t *code = elffile_bytes(elf, start, (size_t)(end - start), &len);

	for (size_t i = 0; cfi && code && i + 6 <= len; i++) {
		uint64_t to = jump_target(code + i, start + i);

		if (to && (to < start || to >= end))
			vote(cfi, all, &nr, to);
	}
	for (size_t i = 1; i < nr; i++)
		if (all[i].nr > all[best].nr)
			best = i;
	if (nr && all[best].nr >= LEAST)
		*cold = all[best].range;
	if (cfi)
		dwarf_cfi_end(cfi);
	return nr && all[best].nr >= LEAST;
}
