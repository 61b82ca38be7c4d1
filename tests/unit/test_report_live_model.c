/* test_report_live_model.c - live blocks against the same rules, said as plainly as they can be */
#include "tests/unit/report_live_world.h"

/* The same rules once more, as plainly as they can be said: an array, searched from the start. */
#define MODEL_BLOCKS 4096

struct model {
	struct live_block blocks[MODEL_BLOCKS];
	size_t nr;
	struct live_block pending[2][8]; /* by process and thread */
	bool has_pending[2][8];
	bool older[2][1500]; /* by process and address */
	bool freed[2][1500]; /* and not allocated since */
	bool expects_older;
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

/* Of the older block freed at @addr. */
static bool *model_older(struct model *m, uint32_t tgid, uint64_t addr)
{
	return &m->older[tgid][(addr - 0x1000) / 16];
}

static bool *model_freed(struct model *m, uint32_t tgid, uint64_t addr)
{
	return &m->freed[tgid][(addr - 0x1000) / 16];
}

static bool model_has(const struct model *m, uint32_t tgid, uint64_t addr)
{
	for (size_t i = 0; i < m->nr; i++)
		if (m->blocks[i].tgid == tgid && m->blocks[i].addr == addr)
			return true;
	return false;
}

/* @e makes it so; NULL: the end does. */
static void model_final(struct model *m, const struct live_block *block, const struct mlk_event *e)
{
	bool *freed = model_freed(m, block->tgid, block->addr);

	if (block->known) {
		model_add(&m->totals.freed, block);
		*freed |= m->expects_older && !model_has(m, block->tgid, block->addr);
		return;
	}
	if (e && e->kind == MLK_ALLOC && e->addr == block->addr) {
		m->totals.unknown_frees++;
	} else if (*freed) {
		m->totals.freed_again++;
	} else {
		m->totals.unknown_frees++;
		*freed = m->expects_older;
		*model_older(m, block->tgid, block->addr) = true;
	}
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
	memset(m->older[tgid], 0, sizeof(m->older[tgid]));
	memset(m->freed[tgid], 0, sizeof(m->freed[tgid]));
}

static void model_event(struct model *m, const struct mlk_event *e)
{
	struct live_block *pending = &m->pending[e->tgid][e->tid];
	bool *has = &m->has_pending[e->tgid][e->tid];
	struct live_block block = {0};
	bool nested = e->kind == MLK_FREE && e->flags & MLK_EVENT_NESTED;

	if (*has && !nested && (e->kind != MLK_RESTORE || pending->addr != e->addr)) {
		model_final(m, pending, e);
		*has = false;
	}
	if (e->kind == MLK_ALLOC) {
		if (model_take(m, e->tgid, e->addr, &block))
			model_add(&m->totals.implied, &block);
		block = (struct live_block){
			.addr = e->addr, .size = e->size, .tgid = e->tgid, .known = true};
		model_add(&m->totals.allocated, &block);
		if (*model_older(m, e->tgid, e->addr))
			model_add(&m->totals.older, &block);
		*model_older(m, e->tgid, e->addr) = false;
		*model_freed(m, e->tgid, e->addr) = false;
		m->blocks[m->nr++] = block;
	} else if (e->kind == MLK_FREE) {
		block.known = model_take(m, e->tgid, e->addr, &block);
		block.addr = e->addr;
		block.tgid = e->tgid;
		if (block.known || !(e->flags & MLK_EVENT_NESTED))
			model_final(m, &block, e);
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
	for (unsigned int round = 0; round < 48; round++) {
		unsigned int seed = round + 1;
		struct live *live = start();

		memset(m, 0, sizeof(*m));
		m->expects_older = round % 8 >= 4;
		if (m->expects_older)
			live_expect_older(live);
		for (int i = 0; i < 6000; i++) {
			struct mlk_event event = random_event(&seed, addresses[round % 4]);

			assert_int_equal(live_event(live, &event, 0), 0);
			model_event(m, &event);
		}
		live_finish(live);
		for (int i = 0; i < 16; i++)
			if (m->has_pending[i / 8][i % 8])
				model_final(m, &m->pending[i / 8][i % 8], NULL);
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
		cmocka_unit_test(it_agrees_with_a_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
