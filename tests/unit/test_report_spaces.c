/* test_report_spaces.c - images from their pieces, and the right maps for each moment */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/spaces.h"

struct fixture {
	struct dwunw *dw;
	struct images *images;
	struct spaces *spaces;
};

static struct fixture start(void)
{
	struct fixture f;

	assert_int_equal(dwunw_new(&f.dw), 0);
	assert_int_equal(images_new(&f.images), 0);
	assert_int_equal(spaces_new(&f.spaces), 0);
	return f;
}

static void finish(struct fixture *f)
{
	spaces_free(f->spaces);
	dwunw_free(f->dw);
	images_free(f->images);
}

static struct mlk_id id_of(uint8_t byte)
{
	return (struct mlk_id){.len = 2, .bytes = {MLK_ID_BUILD_ID, byte}};
}

/* This very program: an ELF file that the unwinder takes. */
static uint8_t *read_self(size_t *len)
{
	FILE *in = fopen("/proc/self/exe", "rb");
	size_t room = 64u << 20;
	uint8_t *bytes = malloc(room);

	assert_non_null(in);
	assert_non_null(bytes);
	*len = fread(bytes, 1, room, in);
	assert_true(*len > 1000 && *len < room);
	fclose(in);
	return bytes;
}

static void send(struct fixture *f, uint8_t id, uint64_t whole, uint64_t offset,
		 const uint8_t *piece, size_t len)
{
	struct mlk_module module = {
		.id = id_of(id),
		.path = "/bin/self",
		.image_len = whole,
		.offset = offset,
		.piece = piece,
		.piece_len = (uint32_t)len,
	};

	assert_int_equal(images_add_piece(f->images, &module), 0);
}

/* Load, and check whether the module with this id is there. */
static void check_module(struct fixture *f, uint8_t id, bool there)
{
	struct mlk_id key = id_of(id);
	uint32_t number;

	assert_int_equal(images_intern(f->images, &key, "", &number), 0);
	assert_string_equal(images_path(f->images, number), "/bin/self");
	assert_int_equal(images_module(f->images, number) != DWUNW_NO_MODULE, there);
}

static void an_image_is_put_together_from_its_pieces(void **state)
{
	struct fixture f = start();
	size_t len;
	uint8_t *self = read_self(&len);

	(void)state;
	send(&f, 1, len, 0, self, 600);
	send(&f, 2, len, 0, self, len);
	send(&f, 1, len, 600, self + 600, len - 600);
	send(&f, 1, len, 0, self, 600); /* once more: nothing new */
	assert_int_equal(images_load(f.images, f.dw), 0);
	check_module(&f, 1, true);
	check_module(&f, 2, true);
	assert_int_equal(images_nr(f.images), 2);
	finish(&f);
	free(self);
}

static void an_image_with_a_piece_missing_is_absent(void **state)
{
	struct fixture f = start();
	size_t len;
	uint8_t *self = read_self(&len);

	(void)state;
	send(&f, 1, len, 0, self, 600); /* its end is missing */
	send(&f, 2, len, 600, self + 600, len - 600);
	send(&f, 3, len, 0, self, 600);
	send(&f, 3, len, 700, self + 700, len - 700);
	send(&f, 3, len, 600, self + 600, len - 600); /* too late */
	send(&f, 4, 0, 0, self, 0);
	send(&f, 5, len, 0, self, 600);
	send(&f, 5, len, 600, self + 600, len - 599); /* longer than the whole */
	send(&f, 6, len, 0, self, 600);
	send(&f, 6, len + 1, 600, self + 600, len - 600);
	send(&f, 7, 1000, 0, (const uint8_t *)"", 1);
	assert_int_equal(images_load(f.images, f.dw), 0);
	for (uint8_t id = 1; id <= 7; id++)
		check_module(&f, id, false);
	finish(&f);
	free(self);
}

static void an_image_may_begin_again(void **state)
{
	struct fixture f = start();
	size_t len;
	uint8_t *self = read_self(&len);

	(void)state;
	send(&f, 1, len, 0, self, 600);
	send(&f, 1, len, 700, self + 700, 1);
	send(&f, 1, len, 0, self, len);
	assert_int_equal(images_load(f.images, f.dw), 0);
	check_module(&f, 1, true);
	finish(&f);
	free(self);
}

static void an_image_that_is_no_elf_file_is_absent(void **state)
{
	struct fixture f = start();
	uint8_t zeros[100] = {0};

	(void)state;
	send(&f, 1, sizeof(zeros), 0, zeros, sizeof(zeros));
	assert_int_equal(images_load(f.images, f.dw), 0);
	check_module(&f, 1, false);
	finish(&f);
}

/* A snapshot with one mapping of code, at @start, and one of data. */
static void snapshot(struct fixture *f, uint32_t tgid, uint64_t time_ns, uint64_t start_addr)
{
	struct mlk_mapping mappings[] = {
		{.start = start_addr,
		 .end = start_addr + 0x1000,
		 .perms = MLK_PERM_R | MLK_PERM_X,
		 .id = id_of(1),
		 .path = "/bin/code"},
		{.start = start_addr + 0x1000,
		 .end = start_addr + 0x2000,
		 .perms = MLK_PERM_R | MLK_PERM_W,
		 .id = id_of(2),
		 .path = "/bin/data"},
		{.start = start_addr + 0x2000,
		 .end = start_addr + 0x3000,
		 .perms = MLK_PERM_X,
		 .path = "[vsyscall]"},
	};
	struct mlk_maps maps = {.tgid = tgid, .time_ns = time_ns, .nr = 3, .mappings = mappings};

	assert_int_equal(spaces_add(f->spaces, &maps, f->images), 0);
}

static void an_event_has_the_last_maps_before_it(void **state)
{
	struct fixture f = start();
	struct dwunw_space *a, *b, *c, *other;

	(void)state;
	snapshot(&f, 1, 200, 0x20000); /* not in the order of time */
	snapshot(&f, 1, 100, 0x10000);
	snapshot(&f, 2, 150, 0x50000);
	snapshot(&f, 1, 200, 0x30000); /* of two with one time the later holds */
	assert_int_equal(spaces_build(f.spaces, f.images, f.dw), 0);
	a = spaces_find(f.spaces, 1, 100);
	b = spaces_find(f.spaces, 1, 200);
	c = spaces_find(f.spaces, 2, 0);
	other = spaces_find(f.spaces, 3, 100);
	assert_non_null(other);
	assert_true(a != b && a != c && b != c && other != a && other != b && other != c);
	assert_ptr_equal(spaces_find(f.spaces, 1, 0), a);
	assert_ptr_equal(spaces_find(f.spaces, 1, 199), a);
	assert_ptr_equal(spaces_find(f.spaces, 1, UINT64_MAX), b);
	assert_ptr_equal(spaces_find(f.spaces, 2, UINT64_MAX), c);
	finish(&f);
}

static void a_row_of_equal_maps_is_one_space(void **state)
{
	struct fixture f = start();

	(void)state;
	for (uint64_t time = 1; time <= 5; time++)
		snapshot(&f, 1, time, time < 4 ? 0x10000 : 0x20000);
	assert_int_equal(spaces_build(f.spaces, f.images, f.dw), 0);
	assert_ptr_equal(spaces_find(f.spaces, 1, 1), spaces_find(f.spaces, 1, 3));
	assert_ptr_equal(spaces_find(f.spaces, 1, 4), spaces_find(f.spaces, 1, 5));
	assert_ptr_not_equal(spaces_find(f.spaces, 1, 3), spaces_find(f.spaces, 1, 4));
	finish(&f);
}

static void only_modules_with_code_are_of_use(void **state)
{
	struct fixture f = start();

	(void)state;
	snapshot(&f, 1, 1, 0x10000);
	assert_int_equal(images_nr(f.images), 1);
	assert_string_equal(images_path(f.images, 0), "/bin/code");
	assert_true(spaces_use(f.spaces, 0));
	assert_false(spaces_use(f.spaces, 1));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_is_put_together_from_its_pieces),
		cmocka_unit_test(an_image_with_a_piece_missing_is_absent),
		cmocka_unit_test(an_image_may_begin_again),
		cmocka_unit_test(an_image_that_is_no_elf_file_is_absent),
		cmocka_unit_test(an_event_has_the_last_maps_before_it),
		cmocka_unit_test(a_row_of_equal_maps_is_one_space),
		cmocka_unit_test(only_modules_with_code_are_of_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
