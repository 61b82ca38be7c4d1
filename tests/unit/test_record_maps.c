/* test_record_maps.c - a table of mappings stays sorted and exact, whatever is mapped over what */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/target/maps.h"

static void proc_maps_lines_are_read(void **state)
{
	char text[] =
		"55f3e0a00000-55f3e0a02000 r-xp 00001000 fe:01 1234   /usr/bin/a name with blanks\n"
		"this is no such line\n"
		"7f0000000000-7f0000001000 rw-s 00000000 00:05 7      /dev/zero (deleted)\n"
		"7f0000001000-7f0000002000 ---p 00000000 00:00 0 \n"
		"7f0000001800-7f0000003000 ---p 00000000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0      [vsyscall]";
	struct maps maps = {0};

	(void)state;
	assert_int_equal(maps_parse(&maps, text), 0);
	assert_int_equal(maps.nr, 4); /* the overlapping line cannot be the kernel's */
	assert_true(maps.v[0].start == 0x55f3e0a00000 && maps.v[0].end == 0x55f3e0a02000);
	assert_int_equal(maps.v[0].perms, MLK_PERM_R | MLK_PERM_X);
	assert_int_equal(maps.v[0].offset, 0x1000);
	assert_int_equal(maps.v[0].dev_major, 0xfe);
	assert_int_equal(maps.v[0].dev_minor, 1);
	assert_int_equal(maps.v[0].inode, 1234);
	assert_string_equal(maps.v[0].path, "/usr/bin/a name with blanks");
	assert_int_equal(maps.v[1].perms, MLK_PERM_R | MLK_PERM_W | MLK_PERM_SHARED);
	assert_string_equal(maps.v[1].path, "/dev/zero (deleted)");
	assert_string_equal(maps.v[2].path, "");
	assert_string_equal(maps.v[3].path, "[vsyscall]");
	assert_true(maps_find(&maps, 0x55f3e0a01fff) == &maps.v[0]);
	assert_null(maps_find(&maps, 0x55f3e0a02000));
	assert_null(maps_find(&maps, 0));
	maps_release(&maps);
}

static void newlines_are_those_of_the_file(void **state)
{
	static const char *const names[] = {"/tmp/test_maps a\nb", "/tmp/test_maps a\\012b"};
	struct maps maps = {0};
	struct stat st;
	char text[256];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd = open(names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		close(fd);
		snprintf(text, sizeof(text), "1000-2000 r-xp 0 0:0 %lu /tmp/test_maps a\\012b\n",
			 (unsigned long)st.st_ino);
		assert_int_equal(maps_parse(&maps, text), 0);
		assert_int_equal(maps.nr, 1);
		assert_string_equal(maps.v[0].path, names[i]);
		maps_clear(&maps);
	}
	for (int i = 0; i < 2; i++)
		unlink(names[i]);
	maps_release(&maps);
}

static void our_own_code_is_found(void **state)
{
	struct maps maps = {0};
	const struct mlk_mapping *m;
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	(void)state;
	assert_true(n > 0);
	exe[n] = '\0';
	assert_int_equal(maps_read(&maps, getpid()), 0);
	m = maps_find(&maps, (uintptr_t)&our_own_code_is_found);
	assert_non_null(m);
	assert_true(m->perms & MLK_PERM_X);
	assert_string_equal(m->path, exe);
	assert_true(maps_read(&maps, 0x7fffffff) < 0);
	assert_true(maps.nr > 3); /* kept as it was */
	maps_release(&maps);
}

#define PAGES 64

/* Compare with an array that says for each page which mapping was put there last. */
static void later_mappings_win(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 200; round++) {
		struct maps maps = {0};
		int owner[PAGES] = {0};

		for (int i = 1; i < 40; i++) {
			unsigned int first = (unsigned int)rand() % PAGES;
			unsigned int nr = 1 + (unsigned int)rand() % (PAGES - first);
			struct mlk_mapping m = {.start = first << 12,
						.end = (first + nr) << 12,
						.offset = (uint64_t)i << 32,
						.inode = (uint64_t)i,
						.path = "x"};

			assert_int_equal(maps_add(&maps, &m), 0);
			for (unsigned int p = first; p < first + nr; p++)
				owner[p] = i;
			/* Bytes of the file follow the addresses, also in what is left of a
			 * mapping. */
			for (unsigned int p = 0; p < PAGES; p++) {
				const struct mlk_mapping *f = maps_find(&maps, (p << 12) + 5);

				assert_int_equal(f ? f->inode : 0, owner[p]);
				if (f && p >= first && p < first + nr)
					assert_true(f->offset + ((p << 12) - f->start) ==
						    m.offset + ((p - first) << 12));
			}
			for (size_t k = 1; k < maps.nr; k++)
				assert_true(maps.v[k - 1].end <= maps.v[k].start);
		}
		maps_release(&maps);
	}
}

static void parse(struct maps *maps, const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	assert_int_equal(maps_parse(maps, copy), 0);
	free(copy);
}

static void generated_code_is_added_beside_what_was_there(void **state)
{
	struct maps maps = {0}, now = {0};

	(void)state;
	parse(&maps, "1000-2000 r-xp 00000000 08:01 7 /bin/code\n"
		     "5000-6000 rwxp 00000000 00:00 0 \n"
		     "9000-a000 rwxp 00000000 00:00 0 \n");
	/* known; over a file's; grown; new; no code; a file's; the kernel's */
	parse(&now, "1800-2800 rwxp 00000000 00:00 0 \n"
		    "5000-7000 rwxp 00000000 00:00 0 \n"
		    "9000-a000 rwxp 00000000 00:00 0 \n"
		    "b000-c000 r-xp 00000000 00:00 0 \n"
		    "d000-e000 rw-p 00000000 00:00 0 \n"
		    "e000-f000 r-xp 00000000 08:01 8 /lib/other\n"
		    "f000-10000 r-xp 00000000 00:00 0 [vdso]\n");
	assert_int_equal(maps_add_generated(&maps, &now), 2);
	assert_int_equal(maps.nr, 4);
	assert_true(maps.v[0].start == 0x1000 && maps.v[0].end == 0x2000);
	assert_true(maps.v[1].start == 0x5000 && maps.v[1].end == 0x7000);
	assert_true(maps.v[2].start == 0x9000 && maps.v[2].end == 0xa000);
	assert_true(maps.v[3].start == 0xb000 && maps.v[3].end == 0xc000);
	assert_int_equal(maps_add_generated(&maps, &now), 0);
	maps_release(&maps);
	maps_release(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proc_maps_lines_are_read),
		cmocka_unit_test(newlines_are_those_of_the_file),
		cmocka_unit_test(our_own_code_is_found),
		cmocka_unit_test(later_mappings_win),
		cmocka_unit_test(generated_code_is_added_beside_what_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
