/* test_format_recent.c - coding 3 of EVENTS chunks, doc/trace-format.md 4.4.1 and 4.4.2: payloads
 * made by hand, and what allocators and words that come again take
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/event/events.h"

#define EVENTS 64

/* A payload with one row of bytes for each column. */
struct columns {
	struct mlk_enc of[MLK_COL_NR];
};

#define PUT(c, column, bytes) mlk_enc_bytes(&(c)->of[column], bytes, sizeof(bytes) - 1)

/* Decode @c in the stack mode raw into @events, at most EVENTS.  Returns as mlk_decoder_next(). */
static int decode(struct columns *c, struct mlk_event *events, size_t *nr)
{
	struct mlk_decoder *d = calloc(1, sizeof(*d));
	struct mlk_enc payload = {0};
	struct mlk_dec bytes;
	int err;

	assert_non_null(d);
	mlk_enc_u8(&payload, MLK_CODING_3 << 4 | MLK_STACK_RAW);
	mlk_enc_columns(&payload, c->of, MLK_COL_NR_1);
	bytes = (struct mlk_dec){.at = payload.buf, .end = payload.buf + payload.len};
	err = mlk_decoder_begin(d, &bytes, 0, false);
	for (*nr = 0; !err && *nr < EVENTS && mlk_decoder_more(d); ++*nr)
		err = mlk_decoder_next(d, &events[*nr]);
	mlk_decoder_release(d);
	free(d);
	mlk_enc_release(&payload);
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_release(&c->of[i]);
	return err;
}

/* What a record of the first thread has beside what is put for each test. */
static void put_head(struct columns *c, uint8_t head, bool first)
{
	mlk_enc_u8(&c->of[MLK_COL_KIND], head);
	if (first)
		PUT(c, MLK_COL_THREAD, "\0\7\7");
	else
		PUT(c, MLK_COL_THREAD, "\1");
	PUT(c, MLK_COL_TIME, "\0");
	PUT(c, MLK_COL_TIME_HIGH, "\0");
	if ((head & MLK_HEAD_KIND) != MLK_ALLOC)
		return;
	PUT(c, MLK_COL_FUNC, "\1");
	PUT(c, MLK_COL_ID, "\0");
	PUT(c, MLK_COL_FLAGS, "\0");
	PUT(c, MLK_COL_STACK, "\0");
}

static void words_are_what_came_lately(void **state)
{
	struct mlk_event events[EVENTS];
	struct columns c = {0};
	size_t nr;

	(void)state;
	/* 0x40, new; 0x41, new and 1 above the address; 0; 0x41 by when it came, the first of all,
	 * so is the address 0x40 behind two others; and the 0x40 that got the number 5 */
	put_head(&c, MLK_ALLOC, true);
	PUT(&c, MLK_COL_ADDR, "\x80\1");
	PUT(&c, MLK_COL_SIZE, "\x08");
	PUT(&c, MLK_COL_REGS, "\x11\0\x3f");
	PUT(&c, MLK_COL_NEW, "\x80\1\2");
	PUT(&c, MLK_COL_REG_WORDS, "\0\4\1\5\x08\x7d");
	assert_int_equal(decode(&c, events, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(events[0].addr, 0x40);
	assert_int_equal(events[0].regs[0], 0x40);
	assert_int_equal(events[0].regs[1], 0x41);
	assert_int_equal(events[0].regs[2], 0);
	assert_int_equal(events[0].regs[3], 0x41);
	assert_int_equal(events[0].regs[4], 0x40);
	assert_int_equal(events[0].regs[5], 0x40);
}

static void what_never_came_is_zero_and_unknown_numbers_are_refused(void **state)
{
	static const struct {
		const char *word;
		size_t len;
		int err;
	} words[] = {
		{"\x05", 1, 0},		    /* the address */
		{"\x06", 1, 0},		    /* nothing came before it */
		{"\x7c", 1, 0},		    /* the last that may be asked for */
		{"\x7d", 1, MLK_E_CORRUPT}, /* no word has a number yet */
		{"\xff\xff\x03", 3, MLK_E_CORRUPT},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 10, MLK_E_CORRUPT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct mlk_event events[EVENTS];
		struct columns c = {0};
		size_t nr;

		put_head(&c, MLK_ALLOC, true);
		PUT(&c, MLK_COL_ADDR, "\x80\1");
		PUT(&c, MLK_COL_SIZE, "\x08");
		PUT(&c, MLK_COL_REGS, "\x11\0\1");
		mlk_enc_bytes(&c.of[MLK_COL_REG_WORDS], words[i].word, words[i].len);
		assert_int_equal(decode(&c, events, &nr), words[i].err);
		if (!words[i].err)
			assert_int_equal(events[0].regs[0], i ? 0 : 0x40);
	}
}

static void blocks_come_back_in_the_order_of_the_lists(void **state)
{
	/* sizes 24 and 25 are of different classes, 0 and 24 of one; n is how a FREE tells which */
	static const struct {
		uint8_t head, size, n;
		uint64_t addr;
	} records[] = {
		{MLK_ALLOC, 24, 0, 0x1000},		     /* its address follows */
		{MLK_ALLOC | MLK_HEAD_FIRST, 24, 0, 0x1020}, /* nothing is free: behind it */
		{MLK_ALLOC | MLK_HEAD_SECOND, 25, 0, 0x1040},
		{MLK_ALLOC | MLK_HEAD_FIRST, 0, 0, 0x1070},
		{MLK_FREE, 0, 4, 0x1000},
		{MLK_RELEASE, 0, 3, 0x1020},
		{MLK_FREE | MLK_HEAD_NESTED, 0, 3, 0x1020}, /* once more: it is in front already */
		{MLK_FREE, 0, 2, 0x1040},
		{MLK_RESTORE, 0, 1, 0x1070}, /* ends nothing */
		{MLK_ALLOC | MLK_HEAD_FIRST, 8, 0, 0x1020},
		{MLK_ALLOC | MLK_HEAD_FIRST, 24, 0, 0x1000},
		{MLK_ALLOC | MLK_HEAD_SECOND, 40, 0, 0x1020}, /* and 0x1040 is not expected again */
		{MLK_ALLOC | MLK_HEAD_FIRST, 40, 0, 0x1050},
	};
	const size_t all = sizeof(records) / sizeof(records[0]);
	struct mlk_event events[EVENTS];
	struct columns c = {0};
	size_t nr;

	(void)state;
	PUT(&c, MLK_COL_ADDR, "\x80\x40");
	for (size_t i = 0; i < all; i++) {
		put_head(&c, records[i].head, !i);
		if ((records[i].head & MLK_HEAD_KIND) == MLK_ALLOC) {
			mlk_enc_u8(&c.of[MLK_COL_SIZE], records[i].size);
			PUT(&c, MLK_COL_REGS, "\x11\0\0");
		} else {
			mlk_enc_u8(&c.of[MLK_COL_ADDR], records[i].n);
		}
	}
	assert_int_equal(decode(&c, events, &nr), 0);
	assert_int_equal(nr, all);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(events[i].addr, records[i].addr);
}

static void heads_that_contradict_are_refused(void **state)
{
	static const uint8_t heads[] = {
		MLK_ALLOC | MLK_HEAD_FIRST | MLK_HEAD_SECOND,
		MLK_ALLOC | MLK_HEAD_FIRST | MLK_HEAD_NESTED,
		MLK_FREE | MLK_HEAD_FIRST,
		MLK_FREE | MLK_HEAD_SECOND,
		MLK_EXEC | MLK_HEAD_FIRST,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads); i++) {
		struct mlk_event events[EVENTS];
		struct columns c = {0};
		size_t nr;

		put_head(&c, heads[i], true);
		PUT(&c, MLK_COL_SIZE, "\x08");
		PUT(&c, MLK_COL_REGS, "\x11\0\0");
		assert_int_equal(decode(&c, events, &nr), MLK_E_CORRUPT);
	}
}

/* An allocator that returns what was freed last: all its blocks are where they are expected, and a
 * register that holds one of some blocks in turn takes a byte. */
static void what_repeats_takes_no_room(void **state)
{
	struct mlk_encoder *e = calloc(1, sizeof(*e));
	uint64_t address[16];

	(void)state;
	assert_non_null(e);
	mlk_encoder_begin(e, 0);
	for (uint64_t i = 0; i < 100; i++) {
		struct mlk_event ev = {.kind = MLK_ALLOC, .nr_regs = 17, .size = 40};

		address[i % 16] = ev.addr = i < 16 ? 0x5000 + i * 48 : address[i % 16];
		ev.regs[3] = address[i * 7 % (i < 16 ? i + 1 : 16)];
		ev.regs[16] = 0x1234 + i % 2; /* no guess holds by pc and place */
		assert_int_equal(mlk_encoder_add(e, &ev), 0);
		ev.kind = MLK_FREE;
		ev.addr = address[(i + 1) % 16];
		if (i >= 15)
			assert_int_equal(mlk_encoder_add(e, &ev), 0);
	}
	/* the first address, and one byte for each of 85 frees */
	assert_in_range(e->columns[MLK_COL_ADDR].len, 86, 90);
	assert_true(e->columns[MLK_COL_REG_WORDS].len <= 200);
	/* the two pcs: all others were addresses */
	assert_in_range(e->columns[MLK_COL_NEW].len, 2, 6);
	mlk_encoder_release(e);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_what_came_lately),
		cmocka_unit_test(what_never_came_is_zero_and_unknown_numbers_are_refused),
		cmocka_unit_test(blocks_come_back_in_the_order_of_the_lists),
		cmocka_unit_test(heads_that_contradict_are_refused),
		cmocka_unit_test(what_repeats_takes_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
