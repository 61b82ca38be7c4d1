/* pins.c - see pins.h */
#include "report/ledger/pins.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

#define PAGE MLK_SMAPS_PAGE
#define FULL 4 /* part of a page from which on it is in use */

int pins_begin(struct pins *pins, size_t nr_stacks)
{
	*pins = (struct pins){.page = UINT64_MAX};
	/* the last is of what has no stack */
	pins->sums = calloc(nr_stacks + 1, sizeof(*pins->sums));
	pins->nr_sums = nr_stacks;
	return pins->sums ? 0 : -ENOMEM;
}

static void end_page(struct pins *pins)
{
	const double rest = (double)(PAGE - pins->live);

	if (pins->nr && pins->live <= PAGE / FULL) {
		pins->pages++;
		pins->bytes += PAGE - pins->live;
		for (size_t i = 0; i < pins->nr; i++) {
			uint32_t stack = pins->parts[i].stack;
			struct ledger_pin *sum =
				&pins->sums[stack < pins->nr_sums ? stack : pins->nr_sums];

			sum->blocks++;
			sum->bytes += rest * (double)pins->parts[i].bytes / (double)pins->live;
		}
	}
	pins->nr = 0;
	pins->live = 0;
}

int pins_add(struct pins *pins, uint64_t start, uint64_t end, uint32_t stack)
{
	int err = 0;

	while (start < end && !err) {
		const uint64_t page = start & ~(uint64_t)(PAGE - 1);
		const uint64_t until = end - page < PAGE ? end : page + PAGE;
		const struct pins_part part = {stack, until - start};

		if (page != pins->page)
			end_page(pins);
		pins->page = page;
		pins->live += part.bytes;
		err = array_append(&pins->parts, &pins->nr, &pins->room, &part, sizeof(part));
		start = until;
	}
	return err;
}

static int by_bytes(const void *a, const void *b)
{
	const struct ledger_pin *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

void pins_finish(struct pins *pins, struct ledger *ledger)
{
	size_t nr = 0;

	end_page(pins);
	for (size_t i = 0; i <= pins->nr_sums; i++)
		if (pins->sums[i].blocks) {
			pins->sums[nr] = pins->sums[i];
			pins->sums[nr++].stack = i < pins->nr_sums ? (uint32_t)i : LEDGER_NO_STACK;
		}
	qsort(pins->sums, nr, sizeof(*pins->sums), by_bytes);
	ledger->pins = pins->sums;
	ledger->nr_pins = nr;
	ledger->pinned_pages = pins->pages;
	ledger->pinned_bytes = pins->bytes;
	pins->sums = NULL;
}

void pins_release(struct pins *pins)
{
	free(pins->parts);
	free(pins->sums);
	*pins = (struct pins){0};
}
