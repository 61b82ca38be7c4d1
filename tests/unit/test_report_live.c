/* test_report_live.c - the rules that match allocations with frees */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/live/live.h"

#define TGID 100

static void send(struct live *live, struct mlk_event event)
{
	if (!event.tgid)
		event.tgid = TGID;
	assert_int_equal(live_event(live, &event, (uint32_t)event.alloc_id), 0);
}

static void alloc(struct live *live, uint32_t tid, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC, .tid = tid, .addr = addr, .size = size});
}

static void other(struct live *live, enum mlk_kind kind, uint32_t tid, uint64_t addr)
{
	send(live, (struct mlk_event){.kind = kind, .tid = tid, .addr = addr});
}

static void nested_free(struct live *live, uint32_t tid, uint64_t addr)
{
	send(live, (struct mlk_event){
			   .kind = MLK_FREE, .flags = MLK_EVENT_NESTED, .tid = tid, .addr = addr});
}

static struct live *start(void)
{
	struct live *live;

	assert_int_equal(live_new(&live), 0);
	return live;
}

static void check_amount(struct live_amount amount, uint64_t blocks, uint64_t bytes)
{
	assert_int_equal(amount.blocks, blocks);
	assert_int_equal(amount.bytes, bytes);
}

static void check_sums(const struct live *live)
{
	const struct live_totals *t = live_totals(live);

	check_amount(t->allocated,
		     t->freed.blocks + t->outstanding.blocks + t->implied.blocks + t->gone.blocks,
		     t->freed.bytes + t->outstanding.bytes + t->implied.bytes + t->gone.bytes);
}

/* Finish, and check what is outstanding, freed and unknown. */
static const struct live_totals *finish(struct live *live, uint64_t blocks, uint64_t freed,
					uint64_t unknown)
{
	live_finish(live);
	check_sums(live);
	assert_int_equal(live_totals(live)->outstanding.blocks, blocks);
	assert_int_equal(live_totals(live)->freed.blocks, freed);
	assert_int_equal(live_totals(live)->unknown_frees, unknown);
	return live_totals(live);
}

static void a_freed_block_is_not_outstanding(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 1, 0x2000, 53);
	other(live, MLK_FREE, 2, 0x1000);
	check_amount(finish(live, 1, 1, 0)->outstanding, 1, 53);
	check_amount(live_totals(live)->freed, 1, 47);
	live_free(live);
}

static void copy_block(void *arg, const struct live_block *block)
{
	*(struct live_block *)arg = *block;
}

static void a_block_keeps_who_got_it_and_when(void **state)
{
	struct mlk_event event = {
		.kind = MLK_ALLOC, .tid = 7, .addr = 0x1000, .time_ns = 99, .alloc_id = 5};
	struct live *live = start();
	struct live_block block = {0};

	(void)state;
	send(live, event);
	check_amount(live_totals(live)->outstanding, 1, 0);
	live_each(live, copy_block, &block);
	assert_int_equal(block.addr, 0x1000);
	assert_int_equal(block.tgid, TGID);
	assert_int_equal(block.tid, 7);
	assert_int_equal(block.time_ns, 99);
	assert_int_equal(block.stack, 5);
	live_free(live);
}

static void map(struct live *live, uint32_t tid, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC,
				      .func = MLK_FUNC_MMAP,
				      .tid = tid,
				      .addr = addr,
				      .size = size});
}

static void unmap(struct live *live, uint32_t tid, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_UNMAP, .tid = tid, .addr = addr, .size = size});
}

static void an_unmapping_cuts_what_it_covers_out_of_mappings(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x5000);
	alloc(live, 1, 0x12000, 47);	/* a block that malloc gave out is none of its business */
	unmap(live, 1, 0x11000, 0xfff); /* rounded up to a page */
	check_amount(live_totals(live)->outstanding, 3, 0x4000 + 47);
	unmap(live, 1, 0x14000, 0x100000);
	check_amount(live_totals(live)->outstanding, 3, 0x3000 + 47);
	unmap(live, 2, 0, 0x11000);
	check_amount(live_totals(live)->outstanding, 2, 0x2000 + 47);
	unmap(live, 2, 0x12000, 0x2000);
	check_amount(finish(live, 1, 2, 0)->outstanding, 1, 47);
	check_amount(live_totals(live)->freed, 2, 0x5000);
	live_free(live);
}

static void a_mapping_that_could_not_be_moved_is_restored(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x3000);
	unmap(live, 1, 0x10000, 0x3000);
	map(live, 2, 0x50000, 0x1000);
	other(live, MLK_RESTORE, 1, 0x10000);
	check_amount(live_totals(live)->outstanding, 2, 0x4000);
	unmap(live, 1, 0x11000, 0x1000); /* of its middle only */
	other(live, MLK_RESTORE, 1, 0x11000);
	finish(live, 4, 0, 0);
	check_amount(live_totals(live)->outstanding, 4, 0x4000);
	live_free(live);
}

static void all_mappings_of_an_mremap_that_failed_stay(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x1000);
	map(live, 1, 0x11000, 0x2000);
	map(live, 1, 0x13000, 0x4000);
	unmap(live, 1, 0x10800, 0x3800); /* of the last only a part */
	map(live, 2, 0x50000, 0x1000);
	unmap(live, 2, 0x50000, 0x1000); /* another thread's is its own */
	other(live, MLK_RESTORE, 1, 0x10800);
	check_amount(live_totals(live)->outstanding, 5, 0x7000);
	check_amount(live_totals(live)->freed, 0, 0);
	live_free(live);
}

static void an_unmapping_is_not_undone_by_an_mremap_that_unmapped_nothing(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x2000);
	map(live, 1, 0x20000, 0x1000);
	unmap(live, 1, 0x10000, 0x2000);
	other(live, MLK_RESTORE, 1, 0x20000); /* MREMAP_DONTUNMAP failed */
	other(live, MLK_RESTORE, 1, 0x10000);
	check_amount(finish(live, 1, 1, 0)->outstanding, 1, 0x1000);
	live_free(live);
}

static void a_mapping_over_others_implies_their_end(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x2000);
	map(live, 1, 0x12000, 0x2000);
	map(live, 2, 0x11000, 0x2000);
	check_amount(live_totals(live)->implied, 0, 0x2000);
	check_amount(live_totals(live)->outstanding, 3, 0x4000);
	map(live, 2, 0, 0x100000);
	check_amount(finish(live, 1, 0, 0)->implied, 3, 0x6000);
	live_free(live);
}

static void mappings_at_the_end_of_memory_do_no_harm(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, UINT64_MAX, 5);
	map(live, 1, UINT64_MAX - 1, UINT64_MAX);
	map(live, 1, 0, UINT64_MAX);
	map(live, 1, 0x1000, 0);
	unmap(live, 1, 0x1000, UINT64_MAX);
	unmap(live, 1, UINT64_MAX, 1);
	other(live, MLK_EXEC, 1, 0);
	check_amount(live_totals(live)->outstanding, 0, 0);
	live_free(live);
}

static void a_reused_address_is_another_block(void **state)
{
	struct live *live = start();

	(void)state;
	for (uint64_t size = 1; size <= 5; size++) {
		alloc(live, 1, 0x1000, size);
		if (size < 5)
			other(live, MLK_FREE, 1, 0x1000);
	}
	check_amount(finish(live, 1, 4, 0)->outstanding, 1, 5);
	live_free(live);
}

static void an_allocation_at_a_live_address_implies_a_free(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 2, 0x1000, 53);
	check_amount(finish(live, 1, 0, 0)->implied, 1, 47);
	check_amount(live_totals(live)->outstanding, 1, 53);
	live_free(live);
}

static void processes_do_not_share_addresses(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	send(live, (struct mlk_event){.kind = MLK_FREE, .tgid = 200, .tid = 2, .addr = 0x1000});
	finish(live, 1, 0, 1);
	live_free(live);
}

static void frees_of_unknown_blocks_are_counted_but_not_nested_ones(void **state)
{
	struct live *live = start();

	(void)state;
	other(live, MLK_FREE, 1, 0x1000);
	nested_free(live, 1, 0x1000);
	alloc(live, 1, 0x1000, 47);
	nested_free(live, 1, 0x1000);
	finish(live, 0, 1, 1);
	live_free(live);
}

static void a_successful_realloc_is_a_free_and_an_allocation(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x1000, 94); /* in place */
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x2000, 200); /* moved */
	check_amount(finish(live, 1, 2, 0)->freed, 2, 47 + 94);
	check_amount(live_totals(live)->allocated, 3, 47 + 94 + 200);
	check_amount(live_totals(live)->implied, 0, 0);
	live_free(live);
}

static void a_nested_free_of_the_released_block_counts_once(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	nested_free(live, 1, 0x1000);
	alloc(live, 1, 0x2000, 94);
	finish(live, 1, 1, 0);
	live_free(live);
}

static void a_nested_free_of_another_block_does_not_end_the_realloc(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 1, 0x2000, 53);
	other(live, MLK_RELEASE, 1, 0x1000);
	nested_free(live, 1, 0x2000);
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 1, 1, 0)->outstanding, 1, 47);
	live_free(live);
}

static void another_thread_may_reuse_a_released_address_at_once(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 2, 0x1000, 53);
	alloc(live, 1, 0x2000, 94);
	check_amount(finish(live, 2, 1, 0)->outstanding, 2, 53 + 94);
	check_amount(live_totals(live)->implied, 0, 0);
	live_free(live);
}

static void a_failed_realloc_frees_nothing(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 2, 0x2000, 53); /* another thread's event decides nothing */
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 2, 0, 0)->allocated, 2, 47 + 53);
	live_free(live);
}

static void a_restore_after_another_event_of_the_thread_does_nothing(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	other(live, MLK_FREE, 1, 0x5000);
	other(live, MLK_RESTORE, 1, 0x1000);
	finish(live, 0, 1, 1);
	live_free(live);
}

static void a_restore_of_another_address_makes_the_release_final(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	other(live, MLK_RESTORE, 1, 0x2000);
	other(live, MLK_RESTORE, 1, 0x1000);
	finish(live, 0, 1, 0);
	live_free(live);
}

static void a_restore_at_an_address_given_out_again_is_an_implied_free(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 2, 0x1000, 53);
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 1, 0, 0)->implied, 1, 47);
	check_amount(live_totals(live)->outstanding, 1, 53);
	live_free(live);
}

static void an_unknown_release_counts_only_when_final(void **state)
{
	struct live *live = start();

	(void)state;
	other(live, MLK_RELEASE, 1, 0x1000);
	other(live, MLK_RESTORE, 1, 0x1000);
	assert_int_equal(live_totals(live)->unknown_frees, 0);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x1000, 47);
	finish(live, 1, 0, 1);
	live_free(live);
}

static void a_release_at_the_end_of_the_trace_is_a_free(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	assert_int_equal(live_totals(live)->freed.blocks, 0);
	finish(live, 0, 1, 0);
	live_free(live);
}

static void exec_ends_the_blocks_of_its_process_only(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 2, 0x2000, 53);
	alloc(live, 3, 0x3000, 59);
	send(live, (struct mlk_event){
			   .kind = MLK_ALLOC, .tgid = 200, .tid = 9, .addr = 0x1000, .size = 61});
	other(live, MLK_RELEASE, 2, 0x2000); /* killed in the middle of it */
	other(live, MLK_EXEC, 1, 0);
	check_amount(live_totals(live)->gone, 3, 47 + 53 + 59);
	alloc(live, 100, 0x1000, 67);
	other(live, MLK_RESTORE, 2, 0x2000);
	check_amount(finish(live, 2, 0, 0)->outstanding, 2, 61 + 67);
	live_free(live);
}

struct told {
	uint64_t last; /* address */
	size_t nr;
};

static void note_gone(void *arg, const struct live_change *change)
{
	struct told *told = arg;

	if (change->sum != LIVE_GONE)
		return;
	assert_true(change->block->addr > told->last);
	told->last = change->block->addr;
	told->nr++;
}

static void an_exec_tells_of_its_blocks_by_their_addresses_if_asked_to(void **state)
{
	struct live *live = start();
	struct told told = {0};

	(void)state;
	live_watch(live, &(struct live_watch){note_gone, &told, .in_order = true});
	for (uint64_t i = 0; i < 1000; i++)
		alloc(live, 1, (i * 7919 % 1000 + 1) * 16, 1);
	other(live, MLK_EXEC, 1, 0);
	assert_int_equal(told.nr, 1000);
	check_amount(finish(live, 0, 0, 0)->gone, 1000, 1000);
	live_free(live);
}

/* Did each exec look at all blocks there are, this would take days. */
static void an_exec_costs_nothing_when_its_process_has_no_blocks(void **state)
{
	struct live *live = start();

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		alloc(live, 1, i * 16, 1);
	for (uint32_t i = 0; i < 1000000; i++) {
		struct mlk_event event = {.tgid = 200 + i % 7, .tid = i, .addr = i, .size = 3};

		event.kind = MLK_ALLOC;
		send(live, event);
		event.kind = i % 2 ? MLK_RELEASE : MLK_EXEC;
		send(live, event);
		event.kind = MLK_EXEC;
		event.tid++; /* the exec kills the thread in its realloc */
		send(live, event);
	}
	check_amount(finish(live, 100000, 0, 0)->gone, 1000000, 3000000);
	live_free(live);
}

static void many_processes_have_their_own_blocks(void **state)
{
	struct live *live = start();

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t tgid = 1; tgid <= 20000; tgid++) {
			struct mlk_event event = {.kind = round ? MLK_FREE : MLK_ALLOC,
						  .tgid = tgid,
						  .tid = tgid,
						  .addr = round ? 0x1000 * (tgid % 2) : 0x1000,
						  .size = 47};

			send(live, event);
		}
	finish(live, 10000, 10000, 10000);
	live_free(live);
}

static void unknown_kinds_are_ignored(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_KIND_NR, 1, 0x1000);
	other(live, 0, 1, 0x1000);
	finish(live, 1, 0, 0);
	live_free(live);
}

/* The same rules once more, as plainly as they can be said: an array, searched from the start. */
#define MODEL_BLOCKS 4096

struct model {
	struct live_block blocks[MODEL_BLOCKS];
	size_t nr;
	struct live_block pending[2][8]; /* by process and thread */
	bool has_pending[2][8];
	struct live_totals totals;
};

static void model_add(struct live_amount *amount, const struct live_block *block)
{
	amount->blocks++;
	amount->bytes += block->size;
}

static bool model_take(struct model *m, uint32_t tgid, uint64_t addr, struct live_block *out)
{
	for (size_t i = 0; i < m->nr; i++) {
		if (m->blocks[i].tgid != tgid || m->blocks[i].addr != addr)
			continue;
		*out = m->blocks[i];
		m->blocks[i] = m->blocks[--m->nr];
		return true;
	}
	return false;
}

static void model_final(struct model *m, const struct live_block *block)
{
	if (block->known)
		model_add(&m->totals.freed, block);
	else
		m->totals.unknown_frees++;
}

static void model_exec(struct model *m, uint32_t tgid)
{
	for (size_t i = m->nr; i-- > 0;) {
		if (m->blocks[i].tgid != tgid)
			continue;
		model_add(&m->totals.gone, &m->blocks[i]);
		m->blocks[i] = m->blocks[--m->nr];
	}
	for (size_t tid = 0; tid < 8; tid++) {
		if (m->has_pending[tgid][tid] && m->pending[tgid][tid].known)
			model_add(&m->totals.gone, &m->pending[tgid][tid]);
		m->has_pending[tgid][tid] = false;
	}
}

static void model_event(struct model *m, const struct mlk_event *e)
{
	struct live_block *pending = &m->pending[e->tgid][e->tid];
	bool *has = &m->has_pending[e->tgid][e->tid];
	struct live_block block = {0};
	bool nested = e->kind == MLK_FREE && e->flags & MLK_EVENT_NESTED;

	if (*has && !nested && (e->kind != MLK_RESTORE || pending->addr != e->addr)) {
		model_final(m, pending);
		*has = false;
	}
	if (e->kind == MLK_ALLOC) {
		if (model_take(m, e->tgid, e->addr, &block))
			model_add(&m->totals.implied, &block);
		block = (struct live_block){
			.addr = e->addr, .size = e->size, .tgid = e->tgid, .known = true};
		model_add(&m->totals.allocated, &block);
		m->blocks[m->nr++] = block;
	} else if (e->kind == MLK_FREE) {
		block.known = model_take(m, e->tgid, e->addr, &block);
		if (block.known || !(e->flags & MLK_EVENT_NESTED))
			model_final(m, &block);
	} else if (e->kind == MLK_RELEASE) {
		*has = true;
		block.known = model_take(m, e->tgid, e->addr, &block);
		block.addr = e->addr;
		block.tgid = e->tgid;
		*pending = block;
	} else if (e->kind == MLK_RESTORE && *has) {
		*has = false;
		block = *pending;
		if (block.known && model_take(m, e->tgid, e->addr, &block)) {
			m->blocks[m->nr++] = block;
			model_add(&m->totals.implied, pending);
		} else if (block.known) {
			m->blocks[m->nr++] = *pending;
		}
	} else if (e->kind == MLK_EXEC) {
		model_exec(m, e->tgid);
	}
}

static void compare_block(void *arg, const struct live_block *block)
{
	struct live_block mine;

	assert_true(model_take(arg, block->tgid, block->addr, &mine));
	assert_int_equal(mine.size, block->size);
}

static struct mlk_event random_event(unsigned int *seed, unsigned int addresses)
{
	static const uint8_t kinds[] = {MLK_ALLOC, MLK_ALLOC,	MLK_ALLOC,  MLK_FREE,
					MLK_FREE,  MLK_RELEASE, MLK_RESTORE};
	struct mlk_event event = {
		.kind = kinds[(unsigned int)rand_r(seed) % 7],
		.tgid = (unsigned int)rand_r(seed) % 2,
		.tid = (unsigned int)rand_r(seed) % 8,
		.addr = 0x1000 + (unsigned int)rand_r(seed) % addresses * 16,
		.size = (unsigned int)rand_r(seed) % 1000,
	};

	if (rand_r(seed) % 997 == 0)
		event.kind = MLK_EXEC;
	if (event.kind == MLK_FREE && rand_r(seed) % 4 == 0)
		event.flags = MLK_EVENT_NESTED;
	return event;
}

static void it_agrees_with_a_naive_model(void **state)
{
	static const unsigned int addresses[] = {2, 7, 61, 1500};
	struct model *m = malloc(sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (unsigned int round = 0; round < 24; round++) {
		unsigned int seed = round + 1;
		struct live *live = start();

		memset(m, 0, sizeof(*m));
		for (int i = 0; i < 6000; i++) {
			struct mlk_event event = random_event(&seed, addresses[round % 4]);

			assert_int_equal(live_event(live, &event, 0), 0);
			model_event(m, &event);
		}
		live_finish(live);
		for (int i = 0; i < 16; i++)
			if (m->has_pending[i / 8][i % 8])
				model_final(m, &m->pending[i / 8][i % 8]);
		for (size_t i = 0; i < m->nr; i++)
			model_add(&m->totals.outstanding, &m->blocks[i]);
		assert_memory_equal(&m->totals, live_totals(live), sizeof(m->totals));
		check_sums(live);
		live_each(live, compare_block, m);
		assert_int_equal(m->nr, 0);
		live_free(live);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_freed_block_is_not_outstanding),
		cmocka_unit_test(a_block_keeps_who_got_it_and_when),
		cmocka_unit_test(an_unmapping_cuts_what_it_covers_out_of_mappings),
		cmocka_unit_test(a_mapping_that_could_not_be_moved_is_restored),
		cmocka_unit_test(all_mappings_of_an_mremap_that_failed_stay),
		cmocka_unit_test(an_unmapping_is_not_undone_by_an_mremap_that_unmapped_nothing),
		cmocka_unit_test(a_mapping_over_others_implies_their_end),
		cmocka_unit_test(mappings_at_the_end_of_memory_do_no_harm),
		cmocka_unit_test(a_reused_address_is_another_block),
		cmocka_unit_test(an_allocation_at_a_live_address_implies_a_free),
		cmocka_unit_test(processes_do_not_share_addresses),
		cmocka_unit_test(frees_of_unknown_blocks_are_counted_but_not_nested_ones),
		cmocka_unit_test(a_successful_realloc_is_a_free_and_an_allocation),
		cmocka_unit_test(a_nested_free_of_the_released_block_counts_once),
		cmocka_unit_test(a_nested_free_of_another_block_does_not_end_the_realloc),
		cmocka_unit_test(another_thread_may_reuse_a_released_address_at_once),
		cmocka_unit_test(a_failed_realloc_frees_nothing),
		cmocka_unit_test(a_restore_after_another_event_of_the_thread_does_nothing),
		cmocka_unit_test(a_restore_of_another_address_makes_the_release_final),
		cmocka_unit_test(a_restore_at_an_address_given_out_again_is_an_implied_free),
		cmocka_unit_test(an_unknown_release_counts_only_when_final),
		cmocka_unit_test(a_release_at_the_end_of_the_trace_is_a_free),
		cmocka_unit_test(exec_ends_the_blocks_of_its_process_only),
		cmocka_unit_test(an_exec_tells_of_its_blocks_by_their_addresses_if_asked_to),
		cmocka_unit_test(an_exec_costs_nothing_when_its_process_has_no_blocks),
		cmocka_unit_test(many_processes_have_their_own_blocks),
		cmocka_unit_test(unknown_kinds_are_ignored),
		cmocka_unit_test(it_agrees_with_a_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
