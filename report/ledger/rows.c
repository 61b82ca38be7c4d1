/* rows.c - see rows.h */
#include "report/ledger/rows.h"

#include <stdlib.h>

#include "report/base/array.h"

int ledger_add_row(struct ledger *ledger, enum ledger_kind kind, uint32_t stack, const char *path,
		   uint64_t bytes)
{
	const struct ledger_row row = {.kind = kind, .stack = stack, .path = path, .bytes = bytes};

	return bytes ? array_append(&ledger->rows, &ledger->nr, &ledger->room, &row, sizeof(row))
		     : 0;
}

static int compare_keepers(const struct keeper *a, const struct keeper *b)
{
	if (a->kind != b->kind)
		return a->kind > b->kind ? 1 : -1;
	if (a->which != b->which)
		return a->which > b->which ? 1 : -1;
	if (a->address != b->address)
		return a->address > b->address ? 1 : -1;
	return (a->steps > b->steps) - (a->steps < b->steps);
}

static int by_keeper(const void *a, const void *b)
{
	const struct hole *x = a, *y = b;

	return compare_keepers(&x->keeper, &y->keeper);
}

int ledger_add_holes(struct ledger *ledger, struct holes *holes)
{
	size_t first = ledger->nr;
	int err = 0;

	if (holes->nr)
		qsort(holes->all, holes->nr, sizeof(*holes->all), by_keeper);
	for (size_t i = 0; i < holes->nr && !err; i++) {
		const struct hole *hole = &holes->all[i];
		struct ledger_row *last = ledger->nr > first ? &ledger->rows[ledger->nr - 1] : NULL;

		if (hole->keeper.kind == KEEPER_NONE) {
			ledger->sums[LEDGER_OTHER] += hole->bytes;
			continue;
		}
		ledger->sums[LEDGER_KEPT] += hole->bytes;
		if (!last || compare_keepers(&last->keeper, &hole->keeper)) {
			const struct ledger_row row = {.kind = LEDGER_KEPT,
						       .keeper = hole->keeper,
						       .bytes = hole->bytes,
						       .mappings = 1};

			err = array_append(&ledger->rows, &ledger->nr, &ledger->room, &row,
					   sizeof(row));
			continue;
		}
		last->bytes += hole->bytes;
		last->mappings++;
	}
	return err;
}

static int by_size(const void *a, const void *b)
{
	const struct ledger_row *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind > y->kind ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack > y->stack ? 1 : -1;
	return compare_keepers(&x->keeper, &y->keeper);
}

void ledger_sort_rows(struct ledger *ledger)
{
	if (ledger->nr)
		qsort(ledger->rows, ledger->nr, sizeof(*ledger->rows), by_size);
}

const char *ledger_kind_text(enum ledger_kind kind)
{
	static const char *const text[LEDGER_NR] = {
		[LEDGER_BLOCK] = "live blocks",
		[LEDGER_MAPPED] = "mapped by the program",
		[LEDGER_OLDER] = "blocks from before the recording",
		[LEDGER_FREE] = "free, kept by the allocator",
		[LEDGER_ALLOCATOR] = "between blocks",
		[LEDGER_STACK] = "stacks of threads",
		[LEDGER_FILE] = "files",
		[LEDGER_SHARED] = "shared memory",
		[LEDGER_CODE] = "code that was generated",
		[LEDGER_KERNEL] = "the kernel's pages",
		[LEDGER_KEPT] = "mapped before the recording or unseen, by what points to it",
		[LEDGER_OTHER] = "other anonymous memory",
	};

	return text[kind];
}

const char *ledger_kind_word(enum ledger_kind kind)
{
	static const char *const word[LEDGER_NR] = {
		[LEDGER_BLOCK] = "blocks",
		[LEDGER_MAPPED] = "mapped",
		[LEDGER_OLDER] = "before",
		[LEDGER_FREE] = "free",
		[LEDGER_ALLOCATOR] = "between_blocks",
		[LEDGER_STACK] = "stacks",
		[LEDGER_FILE] = "files",
		[LEDGER_SHARED] = "shared",
		[LEDGER_CODE] = "code",
		[LEDGER_KERNEL] = "kernel",
		[LEDGER_KEPT] = "kept",
		[LEDGER_OTHER] = "other",
	};

	return word[kind];
}
