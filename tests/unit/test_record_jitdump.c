/* test_record_jitdump.c - dumps of generated code, whole, growing, and such that are none */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/trace.h"
#include "record/generated/jitdump.h"

/* A dump that is being written, and what reads it. */
struct world {
	char path[64];
	int fd;
	struct target self;
	struct jitdump dump;
	struct code_list list;
	char *text;
	uint64_t runs; /* whose dumps they are */
	bool more, is_last;
};

static void put(struct world *w, const void *data, size_t len)
{
	assert_int_equal(write(w->fd, data, len), len);
}

static void put_u32(struct world *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

static void put_u64(struct world *w, uint64_t value)
{
	put(w, &value, sizeof(value));
}

static void put_begin(struct world *w)
{
	put_u32(w, 0x4a695444);
	put_u32(w, 1);
	put_u32(w, 40);
	put_u32(w, 62);
	put_u32(w, 0);
	put_u32(w, 47);
	put_u64(w, ++w->runs);
	put_u64(w, 0);
}

static void put_head(struct world *w, uint32_t id, size_t body)
{
	put_u32(w, id);
	put_u32(w, (uint32_t)(16 + body));
	put_u64(w, 47);
}

/* The function @name at @addr, of 16 bytes. */
static void put_load(struct world *w, uint64_t addr, const char *name)
{
	const size_t len = strlen(name) + 1;
	const char code[16] = {0};

	put_head(w, 0, 40 + len + sizeof(code));
	put_u64(w, 0);
	put_u64(w, addr);
	put_u64(w, addr);
	put_u64(w, sizeof(code));
	put_u64(w, 7);
	put(w, name, len);
	put(w, code, sizeof(code));
}

/* What follows at @addr begins in that place. */
static void put_place(struct world *w, uint64_t addr, const char *file, uint32_t line)
{
	const size_t len = strlen(file) + 1;

	put_head(w, 2, 32 + len);
	put_u64(w, addr);
	put_u64(w, 1);
	put_u64(w, addr);
	put_u32(w, line);
	put_u32(w, 0);
	put(w, file, len);
}

/* The sign of the dump. */
static struct mlk_mapping sign(const struct world *w)
{
	struct stat st;

	assert_int_equal(fstat(w->fd, &st), 0);
	return (struct mlk_mapping){.start = 0x1000,
				    .end = 0x2000,
				    .perms = MLK_PERM_R | MLK_PERM_X,
				    .inode = st.st_ino,
				    .dev_major = major(st.st_dev),
				    .dev_minor = minor(st.st_dev),
				    .path = w->path};
}

static void begin(struct world *w)
{
	struct mlk_mapping m;

	*w = (struct world){.self = {.pid = getpid(), .task = getpid()}};
	snprintf(w->path, sizeof(w->path), "/tmp/jit-%d.dump", (int)getpid());
	unlink(w->path);
	w->fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(w->fd >= 0);
	m = sign(w);
	assert_true(jitdump_meet(&w->dump, &w->self, &m));
	assert_true(w->dump.is_open);
	assert_int_equal(jitdump_number(&w->dump), getpid());
}

static void drop(struct world *w)
{
	code_list_release(&w->list);
	free(w->text);
}

static void read_dump(struct world *w, bool no_files)
{
	drop(w);
	assert_int_equal(jitdump_read(&w->dump, &w->self,
				      &(struct jitdump_how){no_files, w->is_last}, &w->list,
				      &w->text, &w->more),
			 0);
}

static void end(struct world *w)
{
	drop(w);
	jitdump_release(&w->dump);
	close(w->fd);
	unlink(w->path);
}

static void assert_name(const struct world *w, size_t i, uint64_t start, const char *name)
{
	assert_true(i < w->list.nr);
	assert_int_equal(w->list.v[i].start, start);
	assert_int_equal(w->list.v[i].len, 16);
	assert_string_equal(w->list.v[i].name, name);
}

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
		cmocka_unit_test(functions_have_names_and_places),
		cmocka_unit_test(a_record_is_taken_when_all_of_it_is_there),
		cmocka_unit_test(a_dump_that_was_written_anew_is_longer),
		cmocka_unit_test(what_is_never_whole_is_told_in_the_end),
		cmocka_unit_test(no_more_than_the_most_is_taken),
		cmocka_unit_test(of_two_dumps_the_newer_is_read_once),
		cmocka_unit_test(many_are_taken_in_steps),
		cmocka_unit_test(what_is_left_out_is_counted),
		cmocka_unit_test(what_is_no_dump_is_told),
		cmocka_unit_test(a_gigabyte_of_nothing_costs_one_look),
		cmocka_unit_test(other_mappings_are_no_signs),
		cmocka_unit_test(another_file_is_not_read),
		cmocka_unit_test(damaged_dumps_are_read_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
