/* test_record_jitdump_damage.c - dumps that are none, too large, or broken off */
#include "tests/unit/jitdump_world.h"

static void what_is_never_whole_is_told_in_the_end(void **state)
{
	struct world w;
	uint64_t missing;

	(void)state;
	begin(&w);
	put_begin(&w);
	put_load(&w, 0x1000, "first");
	put_u32(&w, 0);
	put_u32(&w, UINT32_MAX);
	put_u64(&w, 0);
	put_load(&w, 0x2000, "behind it");
	missing = 16 + 16 + 40 + sizeof("behind it") + 16;
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 1);
	assert_null(w.dump.source.problem);
	w.is_last = true;
	for (int i = 0; i < 2; i++) {
		read_dump(&w, false);
		assert_string_equal(w.dump.source.problem, "ends within a record");
		assert_int_equal(name_source_missing(&w.dump.source), missing);
	}
	end(&w);
}

static void no_more_than_the_most_is_taken(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	put_begin(&w);
	for (int i = 0; i < 3; i++)
		put_load(&w, 0x1000, "name");
	w.dump.nr = JITDUMP_MAX_RECORDS - 2;
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 2);
	assert_non_null(w.dump.source.problem);
	assert_int_equal(name_source_missing(&w.dump.source), 16 + 40 + 5 + 16);
	/* names of before do not hold: what was taken counts all the same */
	jitdump_restart(&w.dump);
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 0);
	jitdump_begin_trace(&w.dump);
	w.dump.names = JITDUMP_MAX_NAMES - 7;
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 2);
	assert_int_equal(name_source_missing(&w.dump.source), 16 + 40 + 5 + 16);
	end(&w);
}

static void what_is_left_out_is_counted(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	put_begin(&w);
	put_load(&w, 0x1000, "");
	put_load(&w, UINT64_MAX - 4, "beyond all addresses");
	put_load(&w, 0x2000, "good");
	put_head(&w, 1, 48);
	for (int i = 0; i < 6; i++)
		put_u64(&w, 0);
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 1);
	assert_string_equal(w.dump.source.problem, "has records that are none");
	assert_int_equal(w.dump.source.left_out,
			 (16 + 40 + 1 + 16) + (16 + 40 + 21 + 16) + (16 + 48));
	end(&w);
}

static void what_is_no_dump_is_told(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(ftruncate(w.fd, 1 << 30), 0);
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 0);
	assert_string_equal(w.dump.source.problem, "has records that are none");
	assert_int_equal(name_source_missing(&w.dump.source), 1 << 30);
	assert_true(name_source_is_news(&w.dump.source));
	read_dump(&w, false);
	assert_int_equal(name_source_missing(&w.dump.source), 1 << 30);
	end(&w);
}

static void a_gigabyte_of_nothing_costs_one_look(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	put_begin(&w);
	put_load(&w, 0x1000, "good");
	assert_int_equal(ftruncate(w.fd, 1 << 30), 0);
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 1);
	assert_false(w.more);
	assert_true(name_source_missing(&w.dump.source) > (1 << 30) - 200);
	end(&w);
}

/* Another file is at the place of the one that is mapped. */
static void another_file_is_not_read(void **state)
{
	struct world w;
	struct mlk_mapping m;

	(void)state;
	begin(&w);
	m = sign(&w);
	m.inode++;
	assert_true(jitdump_meet(&w.dump, &w.self, &m));
	assert_false(w.dump.is_open);
	read_dump(&w, false);
	assert_string_equal(w.dump.source.problem, "could not be opened");
	end(&w);
}

/* Bytes changed by chance: no name may lie outside of the text, and no call may go on for ever. */
static void damaged_dumps_are_read_to_an_end(void **state)
{
	struct world w;
	off_t size;

	(void)state;
	srand(47);
	begin(&w);
	put_begin(&w);
	for (uint64_t i = 0; i < 16; i++) {
		put_place(&w, 0x1000 * i, "/srv/app.c", 47);
		put_load(&w, 0x1000 * i, "function");
	}
	size = lseek(w.fd, 0, SEEK_CUR);
	for (int round = 0; round < 3000; round++) {
		uint8_t was, now = (uint8_t)rand();
		off_t at = rand() % size;

		assert_int_equal(pread(w.fd, &was, 1, at), 1);
		assert_int_equal(pwrite(w.fd, &now, 1, at), 1);
		jitdump_restart(&w.dump);
		read_dump(&w, round & 1);
		assert_true(w.list.nr <= 16);
		for (size_t i = 0; i < w.list.nr; i++)
			assert_true(strlen(w.list.v[i].name) <= MLK_MAX_STRING);
		assert_int_equal(pwrite(w.fd, &was, 1, at), 1);
	}
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_never_whole_is_told_in_the_end),
		cmocka_unit_test(no_more_than_the_most_is_taken),
		cmocka_unit_test(what_is_left_out_is_counted),
		cmocka_unit_test(what_is_no_dump_is_told),
		cmocka_unit_test(a_gigabyte_of_nothing_costs_one_look),
		cmocka_unit_test(another_file_is_not_read),
		cmocka_unit_test(damaged_dumps_are_read_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
