/* info_heap.c - see info_heap.h */
#include "report/info_heap.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/base/text.h"

/* Print the sums of the states from @first to @last behind @what. */
static void put_sum(const struct info_heap *h, const char *what, int first, int last)
{
	char text[TEXT_NUMBER_MAX];
	uint64_t blocks = 0, bytes = 0;

	for (int state = first; state <= last; state++) {
		blocks += h->blocks[state];
		bytes += h->bytes[state];
	}
	printf(" %s %s", what, text_number(text, blocks));
	printf(" %s", text_number(text, bytes));
}

void info_heap_put(struct info_heap *h, const struct mlk_record *record)
{
	const struct mlk_heap *heap = &record->heap;
	char text[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < heap->nr; i++) {
		unsigned int state = heap->blocks[i].state < MLK_HEAP_STATES ? heap->blocks[i].state
									     : MLK_HEAP_CHANGED;

		h->blocks[state]++;
		h->bytes[state] += heap->blocks[i].size;
	}
	if (!(heap->flags & MLK_HEAP_LAST))
		return;
	printf("%-12s %" PRIu32 " %" PRIu32, "heap", heap->tgid, heap->snapshot);
	put_sum(h, "used", MLK_HEAP_USED, MLK_HEAP_USED);
	put_sum(h, "changed", MLK_HEAP_CHANGED, MLK_HEAP_CHANGED);
	put_sum(h, "free", MLK_HEAP_CACHED, MLK_HEAP_TOP);
	put_sum(h, "own", MLK_HEAP_OWN, MLK_HEAP_OWN);
	printf(" arenas %s", text_number(text, heap->nr_arenas));
	printf(" unwalked %s ", text_number(text, heap->unwalked));
	text_print(stdout, heap->allocator[0] ? heap->allocator : "unknown");
	putchar('\n');
	*h = (struct info_heap){{0}, {0}};
}
