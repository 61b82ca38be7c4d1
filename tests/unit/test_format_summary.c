/* test_format_summary.c - coding 2 of EVENTS chunks, doc/trace-format.md 4.4.4: what is written is
 * read again, and what nobody wrote does no harm */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/record/summary.h"
#include "format/record/summary_state.h"

#define START 5000000ull
#define UNIT  1000ull

static const struct mlk_unwound_module modules[] = {
	{{3, {1, 0xab, 0xcd}}, "/usr/lib/libx.so", 4096}};
static const struct mlk_unwound_stack stacks[] = {
	{.flags = 0},
	{.caller = 1, .module = 1, .pc = 0x2345, .flags = 1},
	{.caller = 2, .pc = 0x10, .flags = 33},
};

static const struct mlk_unwound unwound = {
	.nr_modules = 1, .nr_stacks = 3, .modules = modules, .stacks = stacks};

/* An event, and the number of an ALLOC's stack. */
struct given {
	struct mlk_event event;
	uint32_t stack;
};

#define AN_ALLOC(number, of_stack, bytes)          \
	{                                          \
		.event = {.kind = MLK_ALLOC,       \
			  .func = MLK_FUNC_MALLOC, \
			  .addr = (number),        \
			  .size = (bytes),         \
			  .flags = 1},             \
		.stack = (of_stack)                \
	}
#define OTHER(of_kind, number)                                  \
	{                                                       \
		.event = {.kind = (of_kind), .addr = (number) } \
	}
#define BLOCK(group, place) (MLK_NUMBER_FLAG | (uint64_t)(group) << MLK_PLACE_BITS | (place))

/* All kinds, with numbers and with addresses, in and against their order. */
static const struct given all[] = {
	AN_ALLOC(BLOCK(0, 0), 2, 47),
	AN_ALLOC(BLOCK(0, 1), 2, 47),
	OTHER(MLK_FREE, BLOCK(0, 0)),
	AN_ALLOC(BLOCK(0, 0), 2, 47),
	AN_ALLOC(BLOCK(9, 7), 3, 53),
	OTHER(MLK_FREE, BLOCK(3, 77)), /* of an earlier chunk */
	AN_ALLOC(BLOCK(3, 78), 3, 54),
	OTHER(MLK_RELEASE, BLOCK(3, 78)),
	OTHER(MLK_RESTORE, BLOCK(3, 78)),
	AN_ALLOC(0x7f0012345010, 1, 4096),
	OTHER(MLK_FREE, 0x7f0012345010),
	AN_ALLOC(BLOCK(0, 5), 3, 47), /* not what the group has */
	OTHER(MLK_FORK, 43),
	OTHER(MLK_EXEC, 0),
	OTHER(MLK_EXIT, 0),
	OTHER(MLK_FREE, BLOCK(0, (1u << MLK_PLACE_BITS) - 1)),
	AN_ALLOC(UINT64_MAX, 2, UINT64_MAX),
	{.event = {.kind = MLK_UNMAP, .addr = 0x7f0000000000, .size = 8192}},
	{.event = {.kind = MLK_PAGES,
		   .func = MLK_PAGES_RESIDENT,
		   .addr = 0x7f0000000000,
		   .size = 4096}},
	{.event = {.kind = MLK_FREE, .addr = BLOCK(9, 7), .flags = MLK_EVENT_NESTED}},
	{.event = {.kind = MLK_FREE, .addr = 0x1230, .flags = MLK_EVENT_NESTED}},
};

#define NR (sizeof(all) / sizeof(all[0]))

static struct mlk_event given_event(size_t i)
{
	struct mlk_event event = all[i].event;

	event.tgid = 42;
	event.tid = 42 + (uint32_t)i % 3;
	/* backwards, too */
	event.time_ns = START + 1000000 + (i % 5 == 4 ? 0 : 1700 * i);
	if (event.kind == MLK_ALLOC)
		event.alloc_id = i + (i > 9 ? 1000 : 0);
	return event;
}

static struct mlk_enc encode_all(uint64_t *first_ns)
{
	struct mlk_summary *summary;
	struct mlk_enc payload = {0};

	assert_int_equal(mlk_summary_new(&summary, START, UNIT), 0);
	for (size_t i = 0; i < NR; i++) {
		struct mlk_event event = given_event(i);

		assert_int_equal(mlk_summary_add(summary, &event, all[i].stack), 0);
	}
	assert_int_equal(mlk_summary_events(summary), NR);
	assert_int_equal(mlk_summary_encode(&payload, MLK_STACK_FILTERED, summary, &unwound), 0);
	assert_false(payload.failed);
	*first_ns = summary->first_ns;
	mlk_summary_free(summary);
	return payload;
}

/* Returns 0 or the error; with @check all must be as given. */
static int decode_all(const uint8_t *bytes, size_t len, uint64_t first_ns, bool check)
{
	struct mlk_dec dec = {.at = bytes, .end = bytes + len};
	struct mlk_unwound_room room = {0};
	struct mlk_arena text = {0};
	struct mlk_sum_dec s = {0};
	struct mlk_event event;
	struct mlk_unwound u;
	size_t nr = 0, nr_allocs = 0;
	int err = mlk_summary_decode(&s, &dec, first_ns, &text, &room, &u);

	while (!err && mlk_sum_more(&s)) {
		struct mlk_event want = given_event(nr % NR);

		err = mlk_sum_next(&s, &event);
		assert_int_equal(err, 0); /* all were read before */
		if (check) {
			assert_int_equal(event.kind, want.kind);
			assert_int_equal(event.func, want.func);
			assert_int_equal(event.flags, want.flags);
			assert_int_equal(event.tgid, want.tgid);
			assert_int_equal(event.tid, want.tid);
			assert_true(event.addr == want.addr && event.size == want.size);
			assert_true(event.alloc_id == want.alloc_id);
			assert_in_range(event.time_ns, want.time_ns - UNIT / 2,
					want.time_ns + UNIT / 2);
			if (event.kind == MLK_ALLOC)
				assert_int_equal(u.allocs[nr_allocs], all[nr].stack);
		}
		nr_allocs += event.kind == MLK_ALLOC;
		nr++;
	}
	if (!err)
		assert_int_equal(nr_allocs, u.nr_allocs);
	if (check) {
		assert_int_equal(nr, NR);
		assert_int_equal(u.nr_stacks, 3);
		assert_string_equal(u.modules[0].path, "/usr/lib/libx.so");
		assert_true(u.stacks[2].pc == 0x10);
	}
	mlk_sum_release(&s);
	mlk_unwound_release(&room);
	mlk_arena_release(&text);
	return err;
}

static void what_is_written_is_read(void **state)
{
	uint64_t first_ns;
	struct mlk_enc payload = encode_all(&first_ns);

	(void)state;
	assert_int_equal(decode_all(payload.buf, payload.len, first_ns, true), 0);
	mlk_enc_release(&payload);
}

/* Each length of it, and each byte changed in some ways. */
static void what_nobody_wrote_is_refused_or_read(void **state)
{
	static const uint8_t changes[] = {0x01, 0x80, 0x7f, 0xff};
	uint64_t first_ns;
	struct mlk_enc payload = encode_all(&first_ns);
	size_t nr_refused = 0;

	(void)state;
	for (size_t len = 0; len < payload.len; len++) {
		uint8_t *cut = malloc(len + 1);

		assert_non_null(cut);
		memcpy(cut, payload.buf, len);
		assert_int_equal(decode_all(cut, len, first_ns, false), MLK_E_CORRUPT);
		free(cut);
	}
	for (size_t i = 1; i < payload.len; i++) {
		for (size_t c = 0; c < sizeof(changes); c++) {
			int err;

			payload.buf[i] ^= changes[c];
			err = decode_all(payload.buf, payload.len, first_ns, false);
			payload.buf[i] ^= changes[c];
			assert_true(!err || err == MLK_E_CORRUPT);
			nr_refused += err != 0;
		}
	}
	assert_true(nr_refused > payload.len);
	mlk_enc_release(&payload);
}

static void what_cannot_be_is_not_written(void **state)
{
	const struct mlk_unwound_stack wrong[] = {{.caller = 1, .pc = 1}};
	struct mlk_unwound u = {.nr_stacks = 1, .stacks = wrong};
	struct mlk_event event = {.kind = MLK_ALLOC};
	struct mlk_summary *summary;
	struct mlk_enc payload = {0};

	(void)state;
	assert_int_equal(mlk_summary_new(&summary, START, UNIT), 0);
	assert_int_equal(mlk_summary_add(summary, &event, 0), -EINVAL);
	event.kind = MLK_FREE;
	assert_int_equal(mlk_summary_add(summary, &event, 1), -EINVAL);
	event.kind = MLK_KIND_NR;
	assert_int_equal(mlk_summary_add(summary, &event, 0), -EINVAL);
	event.kind = 0;
	assert_int_equal(mlk_summary_add(summary, &event, 0), -EINVAL);
	assert_int_equal(mlk_summary_events(summary), 0);
	assert_int_equal(mlk_summary_bytes(summary), 0);
	assert_int_equal(mlk_summary_encode(&payload, 0, summary, &u), -EINVAL);
	mlk_enc_release(&payload);
	mlk_summary_free(summary);
}

/* A chunk forgets those before it. */
static void chunks_are_on_their_own(void **state)
{
	struct mlk_summary *summary;
	struct mlk_enc payload = {0}, again = {0};

	(void)state;
	assert_int_equal(mlk_summary_new(&summary, START, UNIT), 0);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < NR; i++) {
			struct mlk_event event = given_event(i);

			assert_int_equal(mlk_summary_add(summary, &event, all[i].stack), 0);
		}
		assert_int_equal(
			mlk_summary_encode(round ? &again : &payload, 0, summary, &unwound), 0);
		mlk_summary_clear(summary);
	}
	assert_int_equal(again.len, payload.len);
	assert_memory_equal(again.buf, payload.buf, again.len);
	mlk_enc_release(&payload);
	mlk_enc_release(&again);
	mlk_summary_free(summary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_nobody_wrote_is_refused_or_read),
		cmocka_unit_test(what_cannot_be_is_not_written),
		cmocka_unit_test(chunks_are_on_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
