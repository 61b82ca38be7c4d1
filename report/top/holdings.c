/* holdings.c - see holdings.h */
#include "report/top/holdings.h"

#include <errno.h>

#include "report/live/sampling.h"

static void add_block(void *arg, const struct live_block *block)
{
	struct holdings *h = arg;
	const struct holder_thread thread = {
		.tgid = h->of_kernel ? block->origin : block->tgid,
		.tid = h->of_kernel ? 0 : block->tid,
	};
	struct live_amount amount = sampling_amount(block);
	struct holding cell = {.stack = block->stack}, *found;
	uint32_t number;

	if (h->failed ||
	    intern_pair(&h->threads.table, &thread, sizeof(thread), &cell.thread) < 0 ||
	    intern_pair(&h->cells.table, &cell, sizeof(cell), &number) < 0) {
		h->failed = true;
		return;
	}
	found = &h->cells.all[number];
	live_amount_add(&found->now, amount);
	if (block->time_ns > h->start_ns)
		found->born_us += amount.blocks * ((block->time_ns - h->start_ns) / 1000);
}

int holdings_fill(struct holdings *holdings, const struct live *live, bool of_kernel,
		  uint64_t start_ns, uint64_t time_ns)
{
	holdings_release(holdings);
	holdings->of_kernel = of_kernel;
	holdings->start_ns = start_ns;
	holdings->time_ns = time_ns;
	live_each(live, add_block, holdings);
	return holdings->failed ? -ENOMEM : 0;
}

uint64_t holdings_age(const struct holdings *holdings, struct live_amount amount, uint64_t born_us)
{
	uint64_t born_ns;

	if (!amount.blocks)
		return 0;
	born_ns = holdings->start_ns + born_us / amount.blocks * 1000;
	return holdings->time_ns > born_ns ? holdings->time_ns - born_ns : 0;
}

void holdings_release(struct holdings *holdings)
{
	intern_release(&holdings->threads.table);
	intern_release(&holdings->cells.table);
	*holdings = (struct holdings){0};
}
