/* stack.h - read from the bytes of a stack, and what can go wrong */
#ifndef DWUNW_STACK_H
#define DWUNW_STACK_H

#include <stdint.h>
#include <string.h>

#include "unwind/dwunw.h"

/* Why a value is there, or is not. */
enum dwunw_fetch {
	DWUNW_FETCH_OK,
	DWUNW_FETCH_BELOW,   /* it is in memory, at an address below the available bytes */
	DWUNW_FETCH_ABOVE,   /* it is in memory, and not all of it below the end of the bytes */
	DWUNW_FETCH_UNKNOWN, /* a register is needed that holds no value */
	DWUNW_FETCH_BAD,     /* the expression makes no sense */
};

/* Read @size (1 to 8) bytes at @addr as a little-endian number; *value is set only on OK. */
static inline enum dwunw_fetch dwunw_stack_read(const struct dwunw_stack *stack, uint64_t addr,
						size_t size, uint64_t *value)
{
	uint64_t at = addr - stack->addr, word = 0;

	if (addr < stack->addr)
		return DWUNW_FETCH_BELOW;
	if (at > stack->len || stack->len - at < size)
		return DWUNW_FETCH_ABOVE;
	memcpy(&word, stack->bytes + at, size);
	*value = word;
	return DWUNW_FETCH_OK;
}

#endif
