/* test_format_accounts.c - ACCOUNTS chunks, doc/trace-format.md 4.14 */
#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

#define NR 20000 /* more than a chunk has */

static struct mlk_account account(uint32_t i)
{
	return (struct mlk_account){.time_ns = 1000,
				    .tgid = i / 2,
				    .tid = i,
				    .flags = i % 3 == 0 ? MLK_ACCOUNT_ENDED : 0,
				    .allocated = {i, UINT64_MAX - i},
				    .freed = {7, i},
				    .freed_by_others = {0, 1u << i % 32}};
}

static struct trace trace_of_accounts(void)
{
	struct mlk_account *all = calloc(NR, sizeof(*all));
	struct mlk_writer *w;
	int fd;

	assert_non_null(all);
	for (uint32_t i = 0; i < NR; i++)
		all[i] = account(i);
	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_accounts(w, all, NR), 0);
	assert_int_equal(mlk_writer_accounts(w, all, 0), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	free(all);
	return slurp(fd);
}

static void accounts_come_back_and_only_to_those_who_ask(void **state)
{
	struct trace t = trace_of_accounts();
	struct mlk_reader *r;
	struct mlk_record rec;

	(void)state;
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.type, MLK_RECORD_ACCOUNT);
	mlk_reader_rewind(r, MLK_RECORD_ACCOUNT);
	for (uint32_t i = 0; i < NR; i++) {
		const struct mlk_account expected = account(i);
		const struct mlk_account *got = &rec.account;

		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_ACCOUNT);
		assert_int_equal(got->time_ns, expected.time_ns);
		assert_int_equal(got->tgid, expected.tgid);
		assert_int_equal(got->tid, expected.tid);
		assert_int_equal(got->flags, expected.flags);
		assert_memory_equal(&got->allocated, &expected.allocated, sizeof(struct mlk_sum));
		assert_memory_equal(&got->freed, &expected.freed, sizeof(struct mlk_sum));
		assert_memory_equal(&got->freed_by_others, &expected.freed_by_others,
				    sizeof(struct mlk_sum));
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* How many accounts are read of @payload, @len bytes of a chunk; *@damaged: it is. */
static int read_accounts(const void *payload, size_t len, bool *damaged)
{
	struct mlk_record last;

	return read_hand_made((struct mlk_chunk){.type = MLK_CHUNK_ACCOUNTS}, payload, len,
			      MLK_RECORD_ACCOUNT, &last, damaged);
}

#define ONE "\7\7\1\1\2\3\4\5\6"

static void wrong_ones_are_damage(void **state)
{
	static const struct {
		size_t len;
		const char *bytes;
		bool damaged;
		int nr;
	} cases[] = {
#define CASE(text, many, bad) {sizeof(text) - 1, text, bad, many}
		CASE("\0", 0, false),
		CASE("\1" ONE, 1, false),
		CASE("\1" ONE "behind", 1, false),
		CASE("\2" ONE ONE, 2, false),
		CASE("\2" ONE, 1, true),				 /* one is missing */
		CASE("\xff\xff\xff\xff\x0f" ONE, 0, true),		 /* 2^32 - 1 of them */
		CASE("\1\xff\xff\xff\xff\x7f\7\1\1\2\3\4\5\6", 0, true), /* tgid of 35 bits */
		CASE("\1\7\7\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\2\3\4\5\6", 0, true),
#undef CASE
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool damaged;

		assert_int_equal(read_accounts(cases[i].bytes, cases[i].len, &damaged),
				 cases[i].nr);
		assert_int_equal(damaged, cases[i].damaged);
	}
}

static void one_that_is_cut_anywhere_is_damage(void **state)
{
	static const char one[] = "\1" ONE;
	bool damaged;

	(void)state;
	for (size_t len = 1; len < sizeof(one) - 1; len++) {
		assert_int_equal(read_accounts(one, len, &damaged), 0);
		assert_true(damaged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounts_come_back_and_only_to_those_who_ask),
		cmocka_unit_test(wrong_ones_are_damage),
		cmocka_unit_test(one_that_is_cut_anywhere_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
