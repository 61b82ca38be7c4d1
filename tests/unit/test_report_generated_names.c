/* test_report_generated_names.c - which name an address of generated code has at which time */
#include "tests/unit/report_spaces_world.h"
#include "unwind/module/space.h"

#define CODE 0x7000000ULL
#define PID  47

/* The process has the mapping of code that it generates. */
static struct fixture start_with_code(void)
{
	struct mlk_mapping code = {
		.start = CODE, .end = CODE + 0x1000, .perms = MLK_PERM_X, .path = ""};
	struct mlk_maps maps = {.tgid = PID, .nr = 1, .mappings = &code};
	struct fixture f = start();

	assert_int_equal(address_spaces_add(f.spaces, &maps, f.images), 0);
	return f;
}

/* A chunk with one name at @time_ns, or none. */
static void add_name(struct fixture *f, uint64_t time_ns, uint32_t flags, uint64_t at,
		     const char *text)
{
	struct mlk_code_name name = {.start = CODE + at, .len = 0x20, .name = text};
	struct mlk_code_names names = {.tgid = PID,
				       .time_ns = time_ns,
				       .flags = flags,
				       .names = &name,
				       .nr = text != NULL,
				       .problem = ""};

	assert_int_equal(address_spaces_add_names(f->spaces, &names, f->images), 0);
}

static void prepare(struct fixture *f)
{
	assert_int_equal(address_spaces_prepare(f->spaces, f->images, f->dw), 0);
}

/* The name at @at of @tgid at @time_ns; "" if it has none. */
static const char *name_at(struct fixture *f, uint32_t tgid, uint64_t time_ns, uint64_t at)
{
	const struct space *space = find(f, tgid, time_ns);
	const struct dwunw_segment *segment = dwunw_space_find(space->modules, CODE + at);
	const char *path = segment ? trace_modules_absent_path(f->images, segment->number) : NULL;

	return path ? path : "";
}

static void an_address_that_is_used_again_has_the_name_of_its_time(void **state)
{
	struct fixture f = start_with_code();

	(void)state;
	add_name(&f, 20, 0, 0x100, "first");
	add_name(&f, 40, 0, 0x110, "second"); /* over a half of it */
	prepare(&f);
	/* nothing better is known before */
	assert_string_equal(name_at(&f, PID, 10, 0x110), "first");
	assert_string_equal(name_at(&f, PID, 20, 0x110), "first");
	assert_string_equal(name_at(&f, PID, 39, 0x11f), "first");
	assert_string_equal(name_at(&f, PID, 39, 0x120), "second");
	assert_string_equal(name_at(&f, PID, 40, 0x10f), "first");
	assert_string_equal(name_at(&f, PID, 40, 0x110), "second");
	assert_string_equal(name_at(&f, PID, 40, 0x130), "");
	finish(&f);
}

static void names_from_before_another_program_do_not_hold(void **state)
{
	struct fixture f = start_with_code();

	(void)state;
	add_name(&f, 20, 0, 0x100, "first");
	add_name(&f, 40, MLK_CODE_NAMES_ANEW, 0x200, "second");
	add_name(&f, 60, MLK_CODE_NAMES_ANEW, 0, NULL);
	prepare(&f);
	assert_string_equal(name_at(&f, PID, 30, 0x100), "first");
	assert_string_equal(name_at(&f, PID, 30, 0x200), "");
	assert_string_equal(name_at(&f, PID, 50, 0x100), "");
	assert_string_equal(name_at(&f, PID, 50, 0x200), "second");
	assert_string_equal(name_at(&f, PID, 70, 0x200), "");
	finish(&f);
}

static void chunks_may_be_in_any_order(void **state)
{
	struct fixture f = start_with_code();

	(void)state;
	add_name(&f, 40, 0, 0x100, "second");
	add_name(&f, 20, 0, 0x100, "first");
	add_name(&f, 40, 0, 0x100, "third"); /* of one time the later one holds */
	prepare(&f);
	assert_string_equal(name_at(&f, PID, 30, 0x100), "first");
	assert_string_equal(name_at(&f, PID, 40, 0x100), "third");
	finish(&f);
}

static void names_are_of_one_process_and_of_its_code(void **state)
{
	struct mlk_mapping file = {.start = CODE,
				   .end = CODE + 0x1000,
				   .perms = MLK_PERM_X,
				   .id = id_of(1),
				   .path = "/bin/code"};
	struct mlk_maps maps = {.tgid = PID, .time_ns = 50, .nr = 1, .mappings = &file};
	struct fixture f = start_with_code();

	(void)state;
	assert_int_equal(address_spaces_add(f.spaces, &maps, f.images), 0);
	add_name(&f, 20, 0, 0x100, "first");
	add_name(&f, 20, 0, 0x2000, "beyond");
	prepare(&f);
	assert_string_equal(name_at(&f, PID, 30, 0x100), "first");
	assert_string_equal(name_at(&f, PID, 30, 0x2000), "");
	assert_string_equal(name_at(&f, PID + 1, 30, 0x100), "");
	/* a file is mapped there by then */
	assert_string_not_equal(name_at(&f, PID, 60, 0x100), "first");
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_that_is_used_again_has_the_name_of_its_time),
		cmocka_unit_test(names_from_before_another_program_do_not_hold),
		cmocka_unit_test(chunks_may_be_in_any_order),
		cmocka_unit_test(names_are_of_one_process_and_of_its_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
