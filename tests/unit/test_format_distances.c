/* test_format_distances.c - words of stacks in coding 4, doc/trace-format.md 4.4.2: a payload made
 * by hand, and stacks whose frames are now here and now there, wherever a program has its stack
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/event/events.h"

#define SP     0x7ffd00000000ull
#define CODE   0x401000ull
#define EVENTS 1000
#define WORDS  1024 /* of a stack, at most */

/* A payload with one row of bytes for each column. */
struct columns {
	struct mlk_enc of[MLK_COL_NR];
};

#define PUT(c, column, bytes) mlk_enc_bytes(&(c)->of[column], bytes, sizeof(bytes) - 1)

/* An ALLOC with 8 words of stack at @sp, those of which change that are in @mask. */
static void put_alloc(struct columns *c, uint64_t sp, uint16_t mask)
{
	PUT(c, MLK_COL_KIND, "\1");
	PUT(c, MLK_COL_THREAD, "\0\7\7");
	PUT(c, MLK_COL_TIME, "\0");
	PUT(c, MLK_COL_TIME_HIGH, "\0");
	PUT(c, MLK_COL_ADDR, "\0");
	PUT(c, MLK_COL_SIZE, "\x08");
	PUT(c, MLK_COL_FUNC, "\1");
	PUT(c, MLK_COL_ID, "\0");
	PUT(c, MLK_COL_FLAGS, "\0");
	PUT(c, MLK_COL_REGS, "\x11");
	mlk_enc_delta(&c->of[MLK_COL_REGS], sp, 0);
	PUT(c, MLK_COL_REGS, "\0");
	mlk_enc_delta(&c->of[MLK_COL_STACK], sp + 64, 0);
	PUT(c, MLK_COL_STACK, "\1\0");
	mlk_enc_u8(&c->of[MLK_COL_MASKS], (uint8_t)mask);
	mlk_enc_u8(&c->of[MLK_COL_MASKS], (uint8_t)(mask >> 8));
}

/* Decode @c in the mode raw and compare its stack. */
static void check_payload(struct columns *c, const uint64_t expected[8])
{
	struct mlk_decoder *d = calloc(1, sizeof(*d));
	struct mlk_enc payload = {0};
	struct mlk_event ev = {0};
	struct mlk_dec bytes;

	assert_non_null(d);
	mlk_enc_u8(&payload, MLK_CODING_4 << 4 | MLK_STACK_RAW);
	mlk_enc_columns(&payload, c->of, MLK_COL_NR_1);
	bytes = (struct mlk_dec){.at = payload.buf, .end = payload.buf + payload.len};
	assert_int_equal(mlk_decoder_begin(d, &bytes, 0, false), 0);
	assert_int_equal(mlk_decoder_next(d, &ev), 0);
	assert_int_equal(ev.stack_len, 64);
	assert_memory_equal(ev.stack, expected, 64);
	for (int i = 0; i < MLK_COL_NR; i++)
		assert_ptr_equal(d->columns[i].at, d->columns[i].end);
	mlk_decoder_release(d);
	free(d);
	mlk_enc_release(&payload);
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_release(&c->of[i]);
}

/* Word 1 is told as 24 behind the mark, word 2 as the number of that, word 4 as CODE, word 5 as
 * what followed at that distance: nothing yet; and word 7 as a pointer, which is no distance. */
static void pointers_are_told_by_distances(void **state)
{
	struct columns c = {0};

	(void)state;
	put_alloc(&c, SP, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 7);
	PUT(&c, MLK_COL_WORDS, "\0\5\0\2\0");
	mlk_enc_delta(&c.of[MLK_COL_NEW], 0xc00000000000 + 24, 0);
	mlk_enc_delta(&c.of[MLK_COL_NEW], CODE, 0xc00000000000 + 24);
	mlk_enc_delta(&c.of[MLK_COL_NEW], SP + 8, CODE);
	check_payload(&c, (const uint64_t[8]){0, SP + 8 + 24, SP + 16 + 24, 0, CODE, 0, 0,
					      0xc00000000000 + 8 - 56});
}

/* Near the mark nothing changes places. */
static void near_the_mark_all_is_told_as_it_is(void **state)
{
	const uint64_t sp = 0xc00000000000 + (1 << 20);
	struct columns c = {0};

	(void)state;
	put_alloc(&c, sp, 1 << 1 | 1 << 2);
	PUT(&c, MLK_COL_WORDS, "\0\0");
	mlk_enc_delta(&c.of[MLK_COL_NEW], 0xc00000000000 + 24, 0);
	mlk_enc_delta(&c.of[MLK_COL_NEW], sp + 8, 0xc00000000000 + 24);
	check_payload(&c, (const uint64_t[8]){0, 0xc00000000000 + 24, sp + 8});
}

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random >> 16;
}

/* A stack that grows downwards: frames are pushed and popped, and what is below stays. */
struct program {
	uint64_t random;
	uint64_t words[WORDS]; /* the last one is the highest */
	unsigned int sp;       /* index of the lowest one in use */
	unsigned int frames[WORDS], nr_frames;
};

static uint64_t base; /* of the stack */

static uint64_t address_of(unsigned int word)
{
	return base + 8 * word;
}

/* Call function @nr: a return address, what it saved of its caller, locals that it sets or not. */
static void call(struct program *p, unsigned int nr)
{
	const unsigned int size = 2 + nr * 5 % 31;

	if (p->sp < size + 40)
		return;
	p->frames[p->nr_frames++] = p->sp;
	p->sp -= size;
	p->words[p->sp + size - 1] = CODE + 64 * nr + 5;
	if (nr % 3)
		p->words[p->sp + size - 2] = address_of(p->sp + size + 3);
	for (unsigned int i = 0; i + 3 < size; i++)
		if (next_random(&p->random) % 5 == 0)
			p->words[p->sp + i] = next_random(&p->random) % 3
						      ? next_random(&p->random) << 20
						      : CODE + next_random(&p->random) % 4096;
}

static void run(struct program *p)
{
	unsigned int steps = (unsigned int)(next_random(&p->random) % 6);

	while (steps-- && p->nr_frames)
		p->sp = p->frames[--p->nr_frames];
	steps = (unsigned int)(next_random(&p->random) % 9);
	while (steps--)
		call(p, (unsigned int)(next_random(&p->random) % 40));
	/* a caller's local, now and then, or words of no pattern */
	if (next_random(&p->random) % 3 == 0)
		p->words[p->sp + next_random(&p->random) % (WORDS - p->sp)] =
			next_random(&p->random) % 2 ? CODE + next_random(&p->random) % 4096
			: next_random(&p->random) % 2
				? 0xc00000000000 + next_random(&p->random) % 512 - 256
				: 0;
}

/* What is kept of @word in @mode, behind the first words. */
static uint64_t kept(int mode, uint64_t word, uint64_t sp)
{
	if (mode == MLK_STACK_RAW || word - CODE < 4096 ||
	    word - ((sp & ~0xfffffull) - 0x100000) < 16u << 20)
		return word;
	return 0;
}

static void check_stack(int mode, const struct program *p, const struct mlk_event *ev)
{
	const unsigned int nr = WORDS - p->sp;

	assert_int_equal(ev->regs[MLK_SP_REG], address_of(p->sp));
	assert_int_equal(ev->stack_len, nr * 8);
	for (unsigned int i = 0; i < nr; i++) {
		const uint64_t word = p->words[p->sp + i];
		const bool top = mode == MLK_STACK_FILTERED && i < 16;

		assert_int_equal(mlk_get_u64(ev->stack + 8 * i),
				 top ? word : kept(mode, word, ev->regs[MLK_SP_REG]));
	}
}

/* Fill @ev, allocation @i, with the stack of @p as it is now. */
static void fill(struct mlk_event *ev, const struct program *p, unsigned int i)
{
	memset(ev, 0, sizeof(*ev));
	ev->kind = MLK_ALLOC;
	ev->tgid = ev->tid = 7;
	ev->func = MLK_FUNC_MALLOC;
	ev->addr = 0x10000 + 64 * i;
	ev->alloc_id = i + 1;
	ev->nr_regs = 17;
	ev->regs[MLK_SP_REG] = address_of(p->sp);
	ev->regs[16] = CODE + 7;
	ev->stack = (const uint8_t *)&p->words[p->sp];
	ev->stack_len = (WORDS - p->sp) * 8;
	ev->stack_kept_from = UINT64_MAX;
}

static void check_mode(int mode)
{
	static const struct mlk_mapping code = {
		.start = CODE, .end = CODE + 4096, .perms = MLK_PERM_R | MLK_PERM_X};
	struct mlk_encoder *e = calloc(1, sizeof(*e));
	struct mlk_decoder *d = calloc(1, sizeof(*d));
	struct program *p = calloc(2, sizeof(*p));
	struct mlk_enc payload = {0};
	struct mlk_event ev;
	struct mlk_dec bytes;

	assert_true(e && d && p);
	p[0].random = 47 + (unsigned int)mode;
	p[0].sp = WORDS;
	p[1] = p[0];
	e->filter.mode = (enum mlk_stack_mode)mode;
	mlk_filter_set_code(&e->filter, &code, 1);
	mlk_encoder_begin(e, 0);
	for (unsigned int i = 0; i < EVENTS; i++) {
		run(&p[0]);
		fill(&ev, &p[0], i);
		assert_int_equal(mlk_encoder_add(e, &ev), 0);
	}
	mlk_encoder_finish(e, &payload);
	bytes = (struct mlk_dec){.at = payload.buf, .end = payload.buf + payload.len};
	assert_int_equal(mlk_decoder_begin(d, &bytes, 0, false), 0);
	for (unsigned int i = 0; i < EVENTS; i++) {
		run(&p[1]);
		assert_int_equal(mlk_decoder_next(d, &ev), 0);
		check_stack(mode, &p[1], &ev);
	}
	assert_false(mlk_decoder_more(d));
	mlk_encoder_release(e);
	mlk_decoder_release(d);
	mlk_enc_release(&payload);
	free(e);
	free(d);
	free(p);
}

static void all_stacks_come_back_wherever_they_are(void **state)
{
	/* a program's, across the mark, as far from it as it counts and farther, and at both ends
	 * of all addresses */
	static const uint64_t bases[] = {SP,
					 0xc00000000000 - 4096,
					 0xc00000000000 - (17 << 20),
					 0xc00000000000 - (33 << 20),
					 0xc00000000000 + (31 << 20),
					 0xc00000000000 + (33 << 20),
					 0x1000,
					 -8ull * WORDS - 8};

	(void)state;
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		base = bases[i];
		for (int mode = MLK_STACK_RAW; mode <= MLK_STACK_REDACTED; mode++)
			check_mode(mode);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointers_are_told_by_distances),
		cmocka_unit_test(near_the_mark_all_is_told_as_it_is),
		cmocka_unit_test(all_stacks_come_back_wherever_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
