/* test_format_facts.c - what version 1.1 holds beyond 1.0, and its bounds */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/event/events.h"
#include "format/reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/format_world.h"

/* The next record, which must be there and of @type. */
static const struct mlk_record *next(struct mlk_reader *r, enum mlk_record_type type)
{
	static struct mlk_record rec;

	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, type);
	return &rec;
}

static struct mlk_reader *open_written(struct mlk_writer *w, int fd, struct trace *t)
{
	struct mlk_reader *r;

	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 99), 0);
	mlk_writer_free(w);
	*t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t->bytes, t->len), 0);
	return r;
}

static void unmaps_forks_exits_and_functions_come_back(void **state)
{
	static const struct mlk_event events[] = {
		{.kind = MLK_UNMAP, .tgid = 7, .tid = 8, .addr = 0x7f0000001000, .size = 0x3000},
		{.kind = MLK_FORK, .tgid = 9, .tid = 9, .addr = 7},
		{.kind = MLK_EXIT, .tgid = 9, .tid = 9, .time_ns = UINT64_MAX},
		{.kind = MLK_UNMAP, .tgid = 7, .tid = 8, .addr = 0x1000, .size = UINT64_MAX},
		{.kind = MLK_ALLOC, .func = MLK_FUNC_MMAP, .nr_regs = 17, .addr = 0x5000},
		{.kind = MLK_ALLOC, .func = MLK_FUNC_NEW_ARRAY, .nr_regs = 17, .addr = 0x6000},
		{.kind = MLK_UNMAP, .addr = 0x5000, .size = 1, .time_ns = 1},
		{.kind = MLK_PAGES,
		 .func = MLK_PAGES_GIVEN_BACK,
		 .addr = 0x5000,
		 .size = 0x1000,
		 .time_ns = 2},
		{.kind = MLK_PAGES, .func = 255, .size = UINT64_MAX},
	};
	const size_t nr = sizeof(events) / sizeof(events[0]);
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_FILTERED);
	struct mlk_reader *r;
	struct trace t;

	(void)state;
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(mlk_writer_event(w, &events[i]), 0);
	r = open_written(w, fd, &t);
	for (size_t i = 0; i < nr; i++) {
		const struct mlk_event *ev = &next(r, MLK_RECORD_EVENT)->event;

		assert_int_equal(ev->kind, events[i].kind);
		assert_int_equal(ev->func, events[i].func);
		assert_true(ev->addr == events[i].addr && ev->size == events[i].size);
		assert_true(ev->time_ns == events[i].time_ns);
		assert_int_equal(ev->tid, events[i].tid);
	}
	mlk_reader_free(r);
	free(t.bytes);
}

static void filters_and_samples_stand_in_meta(void **state)
{
	struct mlk_meta limits = meta;
	const struct mlk_meta *back;
	int fd = memfd_create("trace", 0);
	struct mlk_writer *w;
	struct mlk_reader *r;
	struct trace t;

	(void)state;
	limits.sample_every = 10;
	limits.sample_bytes = 524288;
	limits.min_size = 1;
	limits.max_size = UINT64_MAX;
	limits.trigger_bytes = 1ull << 40;
	limits.ring_size = 64u << 20;
	assert_int_equal(mlk_writer_open(&w, fd, &limits, 1), 0);
	r = open_written(w, fd, &t);
	back = mlk_reader_meta(r);
	assert_true(back->sample_every == 10 && back->sample_bytes == 524288);
	assert_true(back->min_size == 1 && back->max_size == UINT64_MAX);
	assert_true(back->trigger_bytes == 1ull << 40 && back->ring_size == 64u << 20);
	mlk_reader_free(r);
	free(t.bytes);
}

static void add_alloc(struct mlk_writer *w, uint32_t tid, uint64_t time_ns)
{
	const struct mlk_event ev = {
		.kind = MLK_ALLOC, .tgid = 1, .tid = tid, .time_ns = time_ns, .nr_regs = 17};

	assert_int_equal(mlk_writer_event(w, &ev), 0);
}

/* Write the losses @l, of which the @nr of one kind are new. */
static void flush_losses(struct mlk_writer *w, struct mlk_losses *l, uint64_t nr)
{
	l->count[MLK_LOST_UNMAP] += nr;
	l->skipped[MLK_SKIPPED_DELAY] += nr;
	l->skipped_bytes[MLK_SKIPPED_UNKEPT] += nr * 100;
	mlk_writer_set_losses(w, l);
	assert_int_equal(mlk_writer_flush(w), 0);
}

static void losses_say_when_they_happened(void **state)
{
	struct mlk_losses l = {0};
	const struct mlk_losses *back;
	struct mlk_reader *r;
	struct trace t;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	add_alloc(w, 1, 5000);
	flush_losses(w, &l, 3);
	add_alloc(w, 1, 6000);
	flush_losses(w, &l, 0); /* none, no chunk */
	l.first_ns = 6500;
	l.last_ns = 7000;
	flush_losses(w, &l, 1);
	r = open_written(w, fd, &t);
	mlk_reader_rewind(r, MLK_RECORD_LOSSES);
	back = &next(r, MLK_RECORD_LOSSES)->losses;
	assert_true(back->count[MLK_LOST_UNMAP] == 3 && back->skipped[MLK_SKIPPED_DELAY] == 3);
	assert_true(back->first_ns == meta.start_ns && back->last_ns == 5000);
	back = &next(r, MLK_RECORD_LOSSES)->losses;
	assert_true(back->count[MLK_LOST_UNMAP] == 4 && back->skipped[MLK_SKIPPED_DELAY] == 4);
	assert_int_equal(back->skipped_bytes[MLK_SKIPPED_UNKEPT], 400);
	assert_true(back->first_ns == 6500 && back->last_ns == 7000);
	mlk_reader_free(r);
	free(t.bytes);
}

/* A full chunk is followed by the losses too, without a flush. */
static void losses_follow_every_chunk_of_events(void **state)
{
	struct mlk_losses l = {0};
	struct mlk_reader *r;
	struct mlk_record rec;
	struct trace t;
	int fd, chunks = 0;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	for (uint32_t i = 0; i < 5 * MLK_MAX_STREAMS; i++) {
		l.count[MLK_LOST_FREE] = i;
		mlk_writer_set_losses(w, &l);
		add_alloc(w, i, i);
	}
	r = open_written(w, fd, &t);
	mlk_reader_rewind(r, MLK_RECORD_CHUNK);
	while (mlk_reader_next(r, &rec) == 1) {
		if (rec.chunk.records != MLK_RECORD_EVENT)
			continue;
		assert_in_range(rec.chunk.nr_records, 1, MLK_MAX_STREAMS);
		assert_int_equal(rec.chunk.lost_frees,
				 (unsigned int)++chunks * MLK_MAX_STREAMS - 1);
		assert_int_equal(next(r, MLK_RECORD_CHUNK)->chunk.records, MLK_RECORD_LOSSES);
	}
	assert_int_equal(chunks, 5);
	mlk_reader_free(r);
	free(t.bytes);
}

/* A payload with one row of bytes for each column. */
struct columns {
	struct mlk_enc of[MLK_COL_NR];
};

/* What the decoder says of the last record of a payload of coding @coding; *records: of those
 * before. */
static int decode(const struct columns *c, unsigned int coding, unsigned int *records)
{
	struct mlk_decoder *d = calloc(1, sizeof(*d));
	struct mlk_enc payload = {0};
	struct mlk_dec bytes;
	struct mlk_event ev;
	int nr = coding ? MLK_COL_NR : MLK_COL_NR_0, err;

	assert_non_null(d);
	mlk_enc_u8(&payload, (uint8_t)(coding << 4 | MLK_STACK_FILTERED));
	mlk_enc_u8(&payload, (uint8_t)nr);
	for (int i = 0; i < nr; i++)
		mlk_enc_uvar(&payload, c->of[i].len);
	for (int i = 0; i < nr; i++)
		mlk_enc_bytes(&payload, c->of[i].buf, c->of[i].len);
	bytes = (struct mlk_dec){.at = payload.buf, .end = payload.buf + payload.len};
	err = mlk_decoder_begin(d, &bytes, 0, false);
	for (*records = 0; !err && mlk_decoder_more(d); ++*records)
		err = mlk_decoder_next(d, &ev);
	mlk_decoder_release(d);
	free(d);
	mlk_enc_release(&payload);
	return err;
}

static void release(struct columns *c)
{
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_release(&c->of[i]);
}

static void threads_beyond_the_limit_are_refused(void **state)
{
	(void)state;
	for (unsigned int coding = 0; coding < 2; coding++) {
		const unsigned int limit = coding ? MLK_MAX_STREAMS : MLK_MAX_STREAMS_0;
		struct columns c = {0};
		unsigned int records;

		for (unsigned int i = 0; i < limit + 10; i++) {
			mlk_enc_u8(&c.of[MLK_COL_KIND], MLK_EXEC);
			mlk_enc_u8(&c.of[MLK_COL_THREAD], 0);
			mlk_enc_uvar(&c.of[MLK_COL_THREAD], 1);
			mlk_enc_uvar(&c.of[MLK_COL_THREAD], i);
			mlk_enc_u8(&c.of[MLK_COL_TIME], 0);
			mlk_enc_u8(&c.of[MLK_COL_TIME_HIGH], 0);
		}
		fuzz_memory_limit(64u << 20);
		assert_int_equal(decode(&c, coding, &records), MLK_E_CORRUPT);
		fuzz_memory_limit(SIZE_MAX / 2);
		assert_int_equal(records, limit + 1);
		release(&c);
	}
}

/* One ALLOC with a stack of 64 bytes, one word of which is listed, and one register. */
struct column {
	const char *bytes;
	size_t len;
};

static const struct column truth[MLK_COL_NR] = {
#define COLUMN(bytes)                    \
	{                                \
		bytes, sizeof(bytes) - 1 \
	}
	[MLK_COL_KIND] = COLUMN("\1"),
	[MLK_COL_THREAD] = COLUMN("\0\7\7"),
	[MLK_COL_TIME] = COLUMN("\2"),
	[MLK_COL_ADDR] = COLUMN("\x20"),
	[MLK_COL_SIZE] = COLUMN("\7"),
	[MLK_COL_FUNC] = COLUMN("\1"),
	[MLK_COL_ID] = COLUMN("\0"),
	[MLK_COL_FLAGS] = COLUMN("\0"),
	[MLK_COL_REGS] = COLUMN("\x11\x80\x40\1"),
	[MLK_COL_STACK] = COLUMN("\x80\x41\1\0"),
	[MLK_COL_MASKS] = COLUMN("\1\0"),
	[MLK_COL_WORDS] = COLUMN("\4"),
	[MLK_COL_NEW] = COLUMN("\x54\x22"),
	[MLK_COL_TOP] = COLUMN("\2\0"),
	[MLK_COL_TIME_HIGH] = COLUMN("\0"),
	[MLK_COL_REG_WORDS] = COLUMN("\0"),
	[MLK_COL_TOP_WORDS] = COLUMN("\0"),
	/* one stack of a new frame: function 3, place 1 */
	[MLK_COL_FRAMES] = COLUMN("\1"),
	[MLK_COL_FRAME_STACKS] = COLUMN("\0\0\3\4"),
};

static void lies_about_words_are_refused(void **state)
{
	static const struct {
		enum mlk_column column;
		struct column content;
		int err;
	} lies[] = {
		{MLK_COL_KIND, COLUMN("\1"), 0},	       /* the truth */
		{MLK_COL_KIND, COLUMN("\x09"), MLK_E_CORRUPT}, /* no such kind */
		{MLK_COL_KIND, COLUMN("\x26"), MLK_E_CORRUPT}, /* a nested UNMAP */
		{MLK_COL_TIME_HIGH, COLUMN(""), MLK_E_CORRUPT},
		{MLK_COL_REG_WORDS, COLUMN(""), MLK_E_CORRUPT},
		{MLK_COL_REG_WORDS, COLUMN("\4"), MLK_E_CORRUPT}, /* none was new yet */
		{MLK_COL_WORDS, COLUMN("\5"), MLK_E_CORRUPT},
		{MLK_COL_WORDS, COLUMN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), MLK_E_CORRUPT},
		{MLK_COL_WORDS, COLUMN("\2"), 0}, /* guesses are 0 at first */
		{MLK_COL_WORDS, COLUMN("\3"), 0},
		{MLK_COL_TOP, COLUMN("\2"), MLK_E_CORRUPT},
		{MLK_COL_TOP, COLUMN("\1\0"), MLK_E_CORRUPT}, /* a word of the image */
		{MLK_COL_TOP, COLUMN("\0\1"), MLK_E_CORRUPT}, /* beyond the stack */
		{MLK_COL_TOP_WORDS, COLUMN(""), MLK_E_CORRUPT},
		{MLK_COL_NEW, COLUMN("\x54"), MLK_E_CORRUPT},
		{MLK_COL_FRAMES, COLUMN("\0"), 0}, /* none */
		{MLK_COL_FRAMES, COLUMN(""), MLK_E_CORRUPT},
		{MLK_COL_FRAMES, COLUMN("\2"), MLK_E_CORRUPT}, /* that stack is not told */
		{MLK_COL_FRAMES, COLUMN("\xff\xff\xff\xff\xff\1"), MLK_E_CORRUPT},
		{MLK_COL_FRAME_STACKS, COLUMN("\1\0\3\4"), MLK_E_CORRUPT}, /* no callers yet */
		{MLK_COL_FRAME_STACKS, COLUMN("\0\1"), MLK_E_CORRUPT},	   /* no frame yet */
		{MLK_COL_FRAME_STACKS, COLUMN("\0\0\3"), MLK_E_CORRUPT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct columns c = {0};
		unsigned int records;

		for (int n = 0; n < MLK_COL_NR; n++)
			if (n == (int)lies[i].column)
				mlk_enc_bytes(&c.of[n], lies[i].content.bytes, lies[i].content.len);
			else
				mlk_enc_bytes(&c.of[n], truth[n].bytes, truth[n].len);
		if (decode(&c, MLK_CODING_1, &records) != lies[i].err)
			fail_msg("lie %zu", i);
		release(&c);
	}
}

static void another_coding_is_refused(void **state)
{
	struct columns c = {0};
	unsigned int records;

	(void)state;
	for (unsigned int coding = 2; coding < 16; coding++)
		assert_int_equal(decode(&c, coding, &records),
				 coding == MLK_CODING_3 || coding == MLK_CODING_4 ? 0
										  : MLK_E_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmaps_forks_exits_and_functions_come_back),
		cmocka_unit_test(filters_and_samples_stand_in_meta),
		cmocka_unit_test(losses_say_when_they_happened),
		cmocka_unit_test(losses_follow_every_chunk_of_events),
		cmocka_unit_test(threads_beyond_the_limit_are_refused),
		cmocka_unit_test(lies_about_words_are_refused),
		cmocka_unit_test(another_coding_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
