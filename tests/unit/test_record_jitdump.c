/* test_record_jitdump.c - dumps of generated code, whole, growing, and several */
#include "tests/unit/jitdump_world.h"

static void functions_have_names_and_places(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	put_begin(&w);
	put_load(&w, 0x1000, "plain");
	put_place(&w, 0x2000, "/srv/app.c", 47);
	put_load(&w, 0x2000, "placed(int)");
	put_place(&w, 0x3000, "/srv/app.c", 48);
	put_load(&w, 0x4000, "of other code");
	put_place(&w, 0x5000, "/srv/app.js", 49);
	put_load(&w, 0x5000, "JS:*handle /srv/app.js:12:3");
	put_head(&w, 4, 8); /* unwinding information */
	put_u64(&w, 0);
	put_load(&w, 0x6000, "last");
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 5);
	assert_name(&w, 0, 0x1000, "plain");
	assert_name(&w, 1, 0x2000, "placed(int) /srv/app.c:47");
	assert_name(&w, 2, 0x4000, "of other code");
	assert_name(&w, 3, 0x5000, "JS:*handle /srv/app.js:12:3");
	assert_name(&w, 4, 0x6000, "last");
	assert_false(w.more);
	assert_null(w.dump.source.problem);
	jitdump_restart(&w.dump);
	read_dump(&w, true);
	assert_int_equal(w.list.nr, 5);
	assert_name(&w, 1, 0x2000, "placed(int)");
	assert_name(&w, 3, 0x5000, "JS:*handle");
	end(&w);
}

static void a_record_is_taken_when_all_of_it_is_there(void **state)
{
	struct world w;
	off_t whole;

	(void)state;
	begin(&w);
	read_dump(&w, false);
	put_begin(&w);
	read_dump(&w, false);
	put_load(&w, 0x1000, "first");
	whole = lseek(w.fd, 0, SEEK_CUR);
	assert_int_equal(ftruncate(w.fd, whole - 1), 0);
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 0);
	assert_int_equal(ftruncate(w.fd, whole), 0);
	put_load(&w, 0x2000, "second");
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 2);
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 0);
	assert_false(w.dump.source.anew);
	/* written anew */
	assert_int_equal(ftruncate(w.fd, 0), 0);
	assert_int_equal(lseek(w.fd, 0, SEEK_SET), 0);
	put_begin(&w);
	put_load(&w, 0x3000, "third");
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 1);
	assert_name(&w, 0, 0x3000, "third");
	assert_true(w.dump.source.anew);
	assert_null(w.dump.source.problem);
	end(&w);
}

/* Another run of the runtime has the same file. */
static void a_dump_that_was_written_anew_is_longer(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	put_begin(&w);
	put_load(&w, 0x1000, "first");
	read_dump(&w, false);
	assert_int_equal(lseek(w.fd, 0, SEEK_SET), 0);
	put_begin(&w);
	put_load(&w, 0x2000, "a longer one");
	put_load(&w, 0x3000, "third");
	read_dump(&w, false);
	assert_int_equal(w.list.nr, 2);
	assert_name(&w, 0, 0x2000, "a longer one");
	assert_true(w.dump.source.anew);
	assert_null(w.dump.source.problem);
	end(&w);
}

/* The child of a fork has the sign of its parent's dump, too. */
static void of_two_dumps_the_newer_is_read_once(void **state)
{
	struct world w;
	struct mlk_mapping first, second;
	char path[80];
	int fd;

	(void)state;
	begin(&w);
	put_begin(&w);
	put_load(&w, 0x1000, "first");
	first = sign(&w);
	snprintf(path, sizeof(path), "/tmp/jit-%d1.dump", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(w.fd);
	w.fd = fd;
	second = sign(&w);
	second.path = path;
	put_begin(&w);
	put_load(&w, 0x2000, "second");
	for (int i = 0; i < 3; i++) {
		assert_true(jitdump_meet(&w.dump, &w.self, &first));
		assert_true(jitdump_meet(&w.dump, &w.self, &second));
		read_dump(&w, false);
		assert_int_equal(w.list.nr, i ? 0 : 1);
		assert_false(w.more);
	}
	assert_string_equal(w.dump.source.problem, "was replaced before all of it was read");
	assert_true(w.dump.source.left_out > 0);
	unlink(path);
	end(&w);
}

static void many_are_taken_in_steps(void **state)
{
	struct world w;
	uint32_t nr = 0, calls = 0;

	(void)state;
	begin(&w);
	put_begin(&w);
	for (uint64_t i = 0; i < 2 * JITDUMP_STEP + 47; i++)
		put_load(&w, 0x1000 + i * 16, "function");
	do {
		read_dump(&w, false);
		nr += (uint32_t)w.list.nr;
		calls++;
	} while (w.more);
	assert_int_equal(nr, 2 * JITDUMP_STEP + 47);
	assert_int_equal(calls, 3);
	end(&w);
}

static void other_mappings_are_no_signs(void **state)
{
	static const char *const paths[] = {"",
					    "jit-47.dump",
					    "/jit-.dump",
					    "/tmp/jit-47.dumps",
					    "/tmp/jit-47x.dump",
					    "/tmp/exit-47.dump",
					    "[vdso]"};
	struct jitdump dump = {0};
	struct target self = {.pid = getpid(), .task = getpid()};
	struct mlk_mapping m = {.start = 0x1000, .end = 0x2000, .perms = MLK_PERM_X};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		m.path = paths[i];
		assert_false(jitdump_meet(&dump, &self, &m));
	}
	m.path = "/tmp/jit-47.dump";
	m.perms = MLK_PERM_R;
	assert_false(jitdump_meet(&dump, &self, &m));
	assert_null(dump.marker.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_names_and_places),
		cmocka_unit_test(a_record_is_taken_when_all_of_it_is_there),
		cmocka_unit_test(a_dump_that_was_written_anew_is_longer),
		cmocka_unit_test(of_two_dumps_the_newer_is_read_once),
		cmocka_unit_test(many_are_taken_in_steps),
		cmocka_unit_test(other_mappings_are_no_signs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
