/* test_report_spaces.c - images from their pieces, and the right maps for each moment */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <link.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/report_spaces_world.h"
#include "tests/unwind_once.h"

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

	assert_int_equal(trace_modules_add_piece(f->images, &module), 0);
}

/* Load, and check whether the module with this id is there. */
static void check_module(struct fixture *f, uint8_t id, bool there)
{
	struct mlk_id key = id_of(id);
	uint32_t number;

	assert_int_equal(trace_modules_intern(f->images, &key, "", &number), 0);
	assert_string_equal(f->images->all[number].path, "/bin/self");
	assert_int_equal(f->images->all[number].module != DWUNW_NO_MODULE, there);
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
	assert_int_equal(trace_modules_load(f.images, f.dw), 0);
	check_module(&f, 1, true);
	check_module(&f, 2, true);
	assert_int_equal(f.images->nr, 2);
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
	assert_int_equal(trace_modules_load(f.images, f.dw), 0);
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
	assert_int_equal(trace_modules_load(f.images, f.dw), 0);
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
	assert_int_equal(trace_modules_load(f.images, f.dw), 0);
	check_module(&f, 1, false);
	finish(&f);
}

static int copy_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mlk_id *id = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
		const char *end = at + segment->p_memsz;

		while (segment->p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = at + sizeof(*note);
			const char *bytes = name + (note->n_namesz + 3) / 4 * 4;

			if (note->n_type == NT_GNU_BUILD_ID && !strcmp(name, "GNU")) {
				id->len = (uint8_t)(1 + note->n_descsz);
				id->bytes[0] = MLK_ID_BUILD_ID;
				memcpy(id->bytes + 1, bytes, note->n_descsz);
			}
			at = bytes + (note->n_descsz + 3) / 4 * 4;
		}
	}
	return 1; /* the first is the program */
}

/* Note a module without an image.  Returns its number. */
static uint32_t note_absent(struct fixture *f, const struct mlk_id *id, const char *path)
{
	struct mlk_module module = {.id = *id, .path = path};
	uint32_t number;

	assert_int_equal(trace_modules_add_piece(f->images, &module), 0);
	assert_int_equal(trace_modules_intern(f->images, id, path, &number), 0);
	return number;
}

static void the_same_file_stands_in_for_an_image(void **state)
{
	struct fixture f = start();
	struct mlk_id id = {0}, other, of_file;
	uint32_t same, another, file;
	char path[4096] = "";

	(void)state;
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	dl_iterate_phdr(copy_build_id, &id);
	assert_in_range(id.len, 9, MLK_MAX_ID);
	other = of_file = id;
	other.bytes[5] ^= 1;
	of_file.bytes[0] = MLK_ID_FILE;
	same = note_absent(&f, &id, path);
	another = note_absent(&f, &other, path);
	file = note_absent(&f, &of_file, path);
	assert_int_equal(trace_modules_load(f.images, f.dw), 0);
	assert_int_not_equal(f.images->all[same].module, DWUNW_NO_MODULE);
	assert_int_equal(f.images->all[another].module, DWUNW_NO_MODULE);
	assert_int_equal(f.images->all[file].module, DWUNW_NO_MODULE);
	finish(&f);
}

static void an_event_has_the_last_maps_before_it(void **state)
{
	struct fixture f = start();
	const struct space *a, *b, *c, *other;

	(void)state;
	snapshot(&f, 1, 200, 0x20000); /* not in the order of time */
	snapshot(&f, 1, 100, 0x10000);
	snapshot(&f, 2, 150, 0x50000);
	snapshot(&f, 1, 200, 0x30000); /* of two with one time the later holds */
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	a = find(&f, 1, 100);
	b = find(&f, 1, 200);
	c = find(&f, 2, 0);
	other = find(&f, 3, 100);
	assert_true(a != b && a != c && b != c && other != a && other != b && other != c);
	assert_ptr_equal(find(&f, 1, 0), a);
	assert_ptr_equal(find(&f, 1, 199), a);
	assert_ptr_equal(find(&f, 1, UINT64_MAX), b);
	assert_ptr_equal(find(&f, 2, UINT64_MAX), c);
	finish(&f);
}

static void equal_maps_are_one_space(void **state)
{
	struct fixture f = start();

	(void)state;
	for (uint64_t time = 1; time <= 5; time++)
		snapshot(&f, 1, time, time < 4 ? 0x10000 : 0x20000);
	snapshot(&f, 2, 9, 0x10000);
	snapshot(&f, 1, 6, 0x10000);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	assert_ptr_equal(find(&f, 1, 1), find(&f, 2, 9));
	assert_ptr_equal(find(&f, 1, 1), find(&f, 1, 6));
	assert_ptr_equal(find(&f, 1, 1), find(&f, 1, 3));
	assert_ptr_equal(find(&f, 1, 4), find(&f, 1, 5));
	assert_ptr_not_equal(find(&f, 1, 3), find(&f, 1, 4));
	finish(&f);
}

static void only_modules_with_code_are_of_use(void **state)
{
	struct fixture f = start();

	(void)state;
	snapshot(&f, 1, 1, 0x10000);
	assert_int_equal(f.images->nr, 1);
	assert_string_equal(f.images->all[0].path, "/bin/code");
	assert_true(address_spaces_use(f.spaces, 0));
	assert_false(address_spaces_use(f.spaces, 1));
	finish(&f);
}

/* The frame at @pc, which is a return address if @flags say so. */
static struct dwunw_frame frame_at(struct fixture *f, uint64_t pc, uint32_t flags)
{
	struct dwunw_regset regs = {.reg[DWUNW_X86_64_RIP] = pc};
	struct dwunw_stack stack = {0};
	struct dwunw_frame frame;
	enum dwunw_status status;

	if (flags & DWUNW_FRAME_FLAG_RETURN)
		regs.flags = DWUNW_EVENT_RETURN_ADDRESS;
	assert_int_equal(unwind_once(find(f, 1, 1)->modules, PLAIN_SAMPLE(&regs, &stack), &frame, 1,
				     &status),
			 1);
	assert_int_equal(frame.pc, frame.flags & DWUNW_FRAME_FLAG_GENERATED ? 0 : pc);
	return frame;
}

/* The absent module of a frame at @pc with @flags, as it is printed, or NULL; its addr is checked.
 */
static const char *tell(struct fixture *f, uint64_t pc, uint32_t flags, uint64_t addr)
{
	struct dwunw_frame frame = frame_at(f, pc, flags);

	assert_int_equal(frame.addr, addr);
	return frame.module == DWUNW_NO_MODULE ? NULL
					       : trace_modules_absent_path(f->images, frame.module);
}

static void frames_in_absent_modules_have_path_and_offset(void **state)
{
	struct mlk_mapping mappings[] = {
		{.start = 0x1000,
		 .end = 0x2000,
		 .perms = MLK_PERM_X,
		 .offset = 0x300,
		 .path = "/a"},
		{.start = 0x2000, .end = 0x2000, .perms = MLK_PERM_X, .path = "/empty"},
		{.start = 0x2000, .end = 0x3000, .perms = MLK_PERM_X, .path = ""},
		{.start = 0x3000, .end = 0x4000, .perms = MLK_PERM_R, .path = "/data"},
		{.start = 0x5000, .end = 0x6000, .perms = MLK_PERM_X, .path = "/b"},
	};
	struct mlk_maps maps = {.tgid = 1, .nr = 5, .mappings = mappings};
	struct fixture f = start();

	(void)state;
	assert_int_equal(address_spaces_add(f.spaces, &maps, f.images), 0);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	assert_null(tell(&f, 0xfff, 0, 0xfff));
	assert_string_equal(tell(&f, 0x1000, 0, 0x300), "/a");
	assert_string_equal(tell(&f, 0x1fff, 0, 0x12ff), "/a");
	/* of memory of no file, no place is told */
	assert_null(tell(&f, 0x2000, 0, 0));
	/* the call was the last instruction of the mapping, or the return address the first */
	assert_string_equal(tell(&f, 0x2000, DWUNW_FRAME_FLAG_RETURN, 0x1300), "/a");
	assert_null(tell(&f, 0x1000, DWUNW_FRAME_FLAG_RETURN, 0x1000));
	assert_null(tell(&f, 0x3800, 0, 0x3800));
	assert_string_equal(tell(&f, 0x5010, 0, 0x10), "/b");
	assert_null(tell(&f, 0x6000, 0, 0x6000));
	finish(&f);
}

static void frames_in_present_modules_stay(void **state)
{
	struct fixture f = start();
	size_t len;
	uint8_t *self = read_self(&len);

	(void)state;
	send(&f, 1, len, 0, self, len);
	snapshot(&f, 1, 1, 0x10000);
	assert_int_equal(trace_modules_load(f.images, f.dw), 0);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	assert_int_equal(frame_at(&f, 0x10000, 0).module, 0);
	finish(&f);
	free(self);
}

/* What is mapped of it, and again and again, is no reason to take all the memory there is. */
static void there_is_a_limit_to_all_snapshots(void **state)
{
	enum { NR = 1 << 16 };
	struct mlk_mapping *mappings = calloc(NR, sizeof(*mappings));
	struct mlk_maps maps = {.tgid = 1, .nr = NR, .mappings = mappings};
	struct fixture f = start();

	(void)state;
	assert_non_null(mappings);
	for (uint64_t i = 0; i < NR; i++)
		mappings[i] = (struct mlk_mapping){
			.start = i << 12, .end = (i + 1) << 12, .perms = MLK_PERM_X, .path = "[x]"};
	for (maps.time_ns = 1; maps.time_ns <= 100; maps.time_ns++) {
		mappings[0].offset = maps.time_ns; /* another layout */
		assert_int_equal(address_spaces_add(f.spaces, &maps, f.images), 0);
	}
	assert_int_equal(f.spaces->ignored, 100 - (SPACES_MAX_MAPPINGS - 1) / NR);
	/* snapshots without anything in them are as many as there is room for */
	maps.nr = 0;
	while (f.spaces->ignored < 100)
		assert_int_equal(address_spaces_add(f.spaces, &maps, f.images), 0);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	assert_int_equal(find(&f, 1, 1)->nr_maps, 0);
	finish(&f);
	free(mappings);
}

static void there_is_a_limit_to_modules(void **state)
{
	struct fixture f = start();
	uint32_t number;
	char path[32];

	(void)state;
	for (uint32_t i = 0; i <= IMAGES_MAX; i++) {
		assert_false(f.images->overflown);
		snprintf(path, sizeof(path), "/%u", i);
		assert_int_equal(trace_modules_intern(f.images, &(struct mlk_id){0}, path, &number),
				 0);
		assert_int_equal(number, i < IMAGES_MAX ? i : DWUNW_NO_MODULE);
	}
	assert_true(f.images->overflown);
	assert_int_equal(f.images->nr, IMAGES_MAX);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_is_put_together_from_its_pieces),
		cmocka_unit_test(an_image_with_a_piece_missing_is_absent),
		cmocka_unit_test(an_image_may_begin_again),
		cmocka_unit_test(an_image_that_is_no_elf_file_is_absent),
		cmocka_unit_test(the_same_file_stands_in_for_an_image),
		cmocka_unit_test(an_event_has_the_last_maps_before_it),
		cmocka_unit_test(equal_maps_are_one_space),
		cmocka_unit_test(only_modules_with_code_are_of_use),
		cmocka_unit_test(frames_in_absent_modules_have_path_and_offset),
		cmocka_unit_test(frames_in_present_modules_stay),
		cmocka_unit_test(there_is_a_limit_to_all_snapshots),
		cmocka_unit_test(there_is_a_limit_to_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
