/* cfi_spans.c - see cfi_spans.h */
#include "unwind/cfi/cfi_spans.h"

#include <stdbool.h>

#include "array.h"

void dwunw_cfi_spans_release(struct dwunw_cfi_spans *spans)
{
	free(spans->all);
	dwunw_addr_index_release(&spans->functions);
	*spans = (struct dwunw_cfi_spans){0};
}

uint32_t dwunw_cfi_spans_find(const struct dwunw_cfi_spans *spans, uint64_t function, uint64_t addr)
{
	uint32_t at = dwunw_addr_index_find(&spans->functions, function);

	if (at == DWUNW_NOT_FOUND)
		return DWUNW_NOT_FOUND;
	do {
		const struct dwunw_cfi_span *span = &spans->all[at];

		if (addr - span->start < span->len)
			return span->row;
		at = span->next;
	} while (at);
	return DWUNW_NOT_FOUND;
}

/* Whether the function whose first span is @first has as many as it may have. */
static bool is_full(const struct dwunw_cfi_spans *spans, uint32_t first)
{
	uint32_t nr = 1;

	for (uint32_t at = spans->all[first].next; at; at = spans->all[at].next)
		nr++;
	return nr >= DWUNW_CFI_MAX_SPANS;
}

void dwunw_cfi_spans_add(struct dwunw_cfi_spans *spans, uint64_t function, uint64_t start,
			 uint64_t end, uint32_t row)
{
	struct dwunw_cfi_span span = {.start = start, .row = row};
	uint32_t first = dwunw_addr_index_find(&spans->functions, function);

	span.len = end - start < UINT32_MAX ? (uint32_t)(end - start) : UINT32_MAX;
	if (first != DWUNW_NOT_FOUND && is_full(spans, first))
		return;
	if (spans->nr == UINT32_MAX ||
	    grow_array(&spans->all, spans->nr, &spans->room, sizeof(*spans->all)))
		return;
	if (first == DWUNW_NOT_FOUND) {
		if (dwunw_addr_index_add(&spans->functions, function, spans->nr))
			return;
	} else {
		span.next = spans->all[first].next;
		spans->all[first].next = spans->nr;
	}
	spans->all[spans->nr++] = span;
}
