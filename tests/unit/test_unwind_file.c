/* test_unwind_file.c - which files a trace can make us open */
#include <errno.h>

#include "tests/unit/unwind_live.h"
#include "unwind/elf/elf_util.h"

static char scratch[] = "/tmp/test_unwind_file.XXXXXX";
static char self[512];
static struct dwunw_build_id id; /* of this program */
extern const char __ehdr_start[];

static const char *in_scratch(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static bool opens(const char *path)
{
	size_t size = 0;
	int fd = dwunw_file_open(path, &size);

	if (fd < 0)
		return false;
	close(fd);
	assert_true(size > 0 && size <= DWUNW_MAX_FILE);
	return true;
}

static void make_file(const char *name, off_t size)
{
	int fd = open(in_scratch(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static bool opens_link_to(const char *target)
{
	unlink(in_scratch("link"));
	assert_int_equal(symlink(target, in_scratch("link")), 0);
	return opens(in_scratch("link"));
}

static void files_of_the_kernel_are_refused(void **state)
{
	(void)state;
	assert_true(opens(self));
	assert_false(opens("/proc/self/exe"));
	assert_false(opens("/proc/self/maps"));
	assert_false(opens("/sys/kernel/notes"));
	assert_false(opens("/dev/zero"));
	assert_false(opens("/tmp/../sys/kernel/notes"));
	assert_false(opens("//sys//kernel/notes"));
	assert_true(opens_link_to(self));
	assert_false(opens_link_to("/sys/kernel/notes"));
	assert_false(opens_link_to("/nowhere"));
}

static void empty_and_huge_files_are_refused(void **state)
{
	(void)state;
	make_file("file", 0);
	assert_false(opens(in_scratch("file")));
	make_file("file", 1);
	assert_true(opens(in_scratch("file")));
	make_file("file", (off_t)DWUNW_MAX_FILE); /* a hole */
	assert_true(opens(in_scratch("file")));
	make_file("file", (off_t)DWUNW_MAX_FILE + 1);
	assert_false(opens(in_scratch("file")));
}

/* What dwunw_module_open() says to @path and the first @len bytes of @bytes. */
static int open_module(const char *path, const uint8_t *bytes, size_t len)
{
	struct dwunw_frame frame = {
		.addr = (uint64_t)((uintptr_t)open_module - (uintptr_t)__ehdr_start)};
	struct dwunw_symbol symbol;
	struct dwunw *dw;
	int err;

	assert_int_equal(dwunw_new(&dw), 0);
	frame.module = 77;
	err = dwunw_module_open(dw, &frame.module, path, bytes, len);
	assert_int_equal(frame.module, err ? DWUNW_NO_MODULE : 0);
	if (!err) {
		assert_string_equal(dwunw_module_path(dw, frame.module), path);
		assert_int_equal(dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol), 0);
		assert_string_equal(symbol.function, "open_module");
		assert_true(symbol.line > 0);
	}
	dwunw_free(dw);
	return err;
}

static void a_file_is_opened_by_its_build_id(void **state)
{
	struct dwunw_build_id other = id;
	uint8_t long_id[DWUNW_MAX_BUILD_ID + 1] = {0};

	(void)state;
	assert_int_equal(open_module(self, id.bytes, id.len), 0);
	other.bytes[0] ^= 1;
	assert_int_equal(open_module(self, other.bytes, id.len), -ENOENT);
	assert_int_equal(open_module(self, id.bytes, id.len - 1), -ENOENT);
	assert_int_equal(open_module(self, id.bytes, 0), -ENOENT);
	assert_int_equal(open_module(self, long_id, sizeof(long_id)), -ENOENT);
}

static void what_is_no_such_file_is_told(void **state)
{
	(void)state;
	assert_int_equal(open_module("/nowhere", id.bytes, id.len), -ENOENT);
	assert_int_equal(open_module("/proc/self/exe", id.bytes, id.len), -ENOENT);
	assert_int_equal(open_module(scratch, id.bytes, id.len), -ENOENT);
	assert_int_equal(open_module("", id.bytes, id.len), -ENOENT);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(open_module(self + 1, id.bytes, id.len), -ENOENT);
	make_file("file", 4096);
	assert_int_equal(open_module(in_scratch("file"), id.bytes, id.len), DWUNW_ERR_ELF);
}

static int setup(void **state)
{
	Elf *elf;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	dwunw_elf_build_id(elf, &id);
	elf_end(elf);
	close(fd);
	if (!id.len || readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		return -1;
	return mkdtemp(scratch) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_the_kernel_are_refused),
		cmocka_unit_test(empty_and_huge_files_are_refused),
		cmocka_unit_test(a_file_is_opened_by_its_build_id),
		cmocka_unit_test(what_is_no_such_file_is_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
