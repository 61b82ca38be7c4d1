/* cfi_spans.h - which addresses of a function have one row */
#ifndef DWUNW_CFI_SPANS_H
#define DWUNW_CFI_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/addr_index.h"

/* Rows that are kept of a function.  The others are found anew for each address. */
#define DWUNW_CFI_MAX_SPANS 16

/* Addresses with one row. */
struct dwunw_cfi_span {
	uint64_t start;
	uint32_t len;  /* bytes */
	uint32_t row;  /* number */
	uint32_t next; /* another one of the function; 0: there is none */
};

/* Zeroes make an empty one. */
struct dwunw_cfi_spans {
	struct dwunw_cfi_span *all;
	uint32_t nr;
	size_t room;
	struct dwunw_addr_index functions; /* to the first span of each */
};

/* Free all, and make an empty one. */
void dwunw_cfi_spans_release(struct dwunw_cfi_spans *spans);

/* The number of the row of @function, any number that tells it from others, at @addr; or
 * DWUNW_NOT_FOUND. */
uint32_t dwunw_cfi_spans_find(const struct dwunw_cfi_spans *spans, uint64_t function,
			      uint64_t addr);

/* Keep that row number @row of @function is for the addresses from @start to before @end.  Without
 * memory, or with DWUNW_CFI_MAX_SPANS already, it is not kept: that costs time, nothing else. */
void dwunw_cfi_spans_add(struct dwunw_cfi_spans *spans, uint64_t function, uint64_t start,
			 uint64_t end, uint32_t row);

#endif
