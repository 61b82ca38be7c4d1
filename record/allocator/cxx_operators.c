/* cxx_operators.c - see cxx_operators.h */
#include "record/allocator/cxx_operators.h"

#include <string.h>

#include "record/allocator/alloc_functions.h"

/* libstdc++ calls malloc after 23 bytes, aligned_alloc after 65.  What an allocator's operator does
 * by itself it does here; what it calls behind that is for the rest. */
#define BEGINNING 128

#define CALL 0xe8 /* and JMP: four bytes follow, the distance from behind them */
#define JMP  0xe9

/* Does @op begin by calling @func of the same file? */
static bool calls(Elf *elf, const struct elf_function *op, const struct elf_function *func)
{
	size_t most = op->size && op->size < BEGINNING ? (size_t)op->size : BEGINNING, len;
	const uint8_t *code = elffile_bytes(elf, op->address, most, &len);
	int32_t distance;

	/* Bytes that are no such instruction would have to hold the very distance by chance. */
	for (size_t i = 0; code && i + 5 <= len; i++) {
		if (code[i] != CALL && code[i] != JMP)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		if (op->address + i + 5 + (uint64_t)(int64_t)distance == func->address)
			return true;
	}
	return false;
}

/* Does operator @op call a function that allocates, or one of the operators @left, which do? */
static bool calls_any(Elf *elf, const struct elf_function *found, size_t op, const bool *left)
{
	for (size_t i = 0; i < WANTED_NR; i++) {
		bool below = wanted[i].group == WANTED_C && wanted[i].kind == SITE_ALLOC;

		if (found[i].found && (below || left[i]) && calls(elf, &found[op], &found[i]))
			return true;
	}
	return false;
}

bool cxx_operators_leave(Elf *elf, struct elf_function *found)
{
	bool left[WANTED_NR] = {0}, any = false, all = true;

	for (size_t i = 0; i < WANTED_NR; i++) {
		if (!alloc_functions_is_new(i) || !found[i].found)
			continue;
		left[i] = calls_any(elf, found, i, left);
		any |= left[i];
		all &= left[i];
	}
	/* Where new does something by itself, so may delete, though it calls free for the rest. */
	for (size_t i = 0; i < WANTED_NR; i++)
		if (left[i] || (any && all && alloc_functions_is_operator(i)))
			found[i].found = false;
	return any && all;
}
