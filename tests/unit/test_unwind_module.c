/* test_unwind_module.c - images: broken ones, those of others, and where their debug files are */
#include <elf.h>
#include <errno.h>

#include "tests/unit/unwind_live.h"

/* This program's own file, as a subject that can be changed. */
struct copy {
	uint8_t *bytes;
	size_t len;
	char path[256];
	char id[41]; /* its build-id in hex */
};

static char scratch[] = "/tmp/test_unwind_module.XXXXXX";

#include "tests/unit/scratch.h"
extern const char __ehdr_start[];

static char *name_table(const struct copy *copy)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)copy->bytes;
	Elf64_Shdr *all = (Elf64_Shdr *)(copy->bytes + ehdr->e_shoff);

	return (char *)copy->bytes + all[ehdr->e_shstrndx].sh_offset;
}

static Elf64_Shdr *section(const struct copy *copy, const char *name)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)copy->bytes;
	Elf64_Shdr *all = (Elf64_Shdr *)(copy->bytes + ehdr->e_shoff);

	for (int i = 1; i < ehdr->e_shnum; i++)
		if (!strcmp(name_table(copy) + all[i].sh_name, name))
			return &all[i];
	return NULL;
}

/* The 20 bytes of the build-id, after the note's header and the name "GNU". */
static uint8_t *build_id(const struct copy *copy)
{
	Elf64_Shdr *note = section(copy, ".note.gnu.build-id");

	assert_non_null(note);
	assert_int_equal(note->sh_size, 16 + 20);
	return copy->bytes + note->sh_offset + 16;
}

static struct copy read_self(void)
{
	struct copy copy = {0};
	FILE *file = fopen("/proc/self/exe", "re");
	ssize_t len = readlink("/proc/self/exe", copy.path, sizeof(copy.path) - 1);

	assert_non_null(file);
	assert_true(len > 0);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	copy.len = (size_t)ftell(file);
	copy.bytes = malloc(copy.len);
	assert_non_null(copy.bytes);
	rewind(file);
	assert_int_equal(fread(copy.bytes, 1, copy.len, file), copy.len);
	fclose(file);
	for (int i = 0; i < 20; i++)
		snprintf(copy.id + 2 * i, 3, "%02x", build_id(&copy)[i]);
	return copy;
}

/* Make the image look as if it had no debug information, like most images in a trace. */
static void hide_debug_info(struct copy *copy)
{
	Elf64_Shdr *info = section(copy, ".debug_info");

	assert_non_null(info);
	name_table(copy)[info->sh_name + 1] = 'X';
}

/* Turn the section .comment into one that names the debug file @link. */
static void set_debug_link(struct copy *copy, const char *link)
{
	Elf64_Shdr *comment = section(copy, ".comment"),
		   *strings = section(copy, ".debug_line_str");

	assert_non_null(comment);
	assert_non_null(strings);
	assert_true(strlen(link) < comment->sh_size);
	/* .comment's own name has no room for the new one. */
	memcpy(name_table(copy) + strings->sh_name, ".gnu_debuglink", sizeof(".gnu_debuglink"));
	comment->sh_name = strings->sh_name;
	strings->sh_name = 0;
	memcpy(copy->bytes + comment->sh_offset, link, strlen(link) + 1);
}

/* Path @name in the scratch directory; valid until the next call but one. */
static const char *in_scratch(const char *name)
{
	static char path[2][256];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", scratch, name);
	return path[turn];
}

static void make_dir(const char *name)
{
	assert_true(!mkdir(in_scratch(name), 0700) || errno == EEXIST);
}

static void write_file(const char *path, const struct copy *copy)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(copy->bytes, 1, copy->len, file), copy->len);
	assert_int_equal(fclose(file), 0);
}

/* The name of read_self() when its module is @copy, loaded from @path. */
static struct dwunw_symbol resolve(struct dwunw *dw, const struct copy *copy, const char *path)
{
	struct dwunw_frame frame = {0};
	struct dwunw_symbol symbol;

	assert_int_equal(dwunw_module_add(dw, &frame.module, path, copy->bytes, copy->len), 0);
	assert_string_equal(dwunw_module_path(dw, frame.module), path);
	frame.addr = (uint64_t)((uintptr_t)read_self - (uintptr_t)__ehdr_start);
	assert_int_equal(dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol), 0);
	assert_string_equal(symbol.function, "read_self");
	assert_int_equal(symbol.offset, 0);
	return symbol;
}

/* Whether lines are found for @copy, loaded from @path, with the debug directory @dir or NULL. */
static bool finds_lines(const struct copy *copy, const char *path, const char *dir)
{
	struct dwunw *dw;
	bool found;

	assert_int_equal(dwunw_new(&dw), 0);
	if (dir)
		assert_int_equal(dwunw_debug_dir_add(dw, dir), 0);
	found = resolve(dw, copy, path).line > 0;
	dwunw_free(dw);
	return found;
}

static int add_image(const void *image, size_t len)
{
	uint32_t module = 77;
	struct dwunw *dw;
	int err;

	assert_int_equal(dwunw_new(&dw), 0);
	err = dwunw_module_add(dw, &module, "/x", image, len);
	assert_int_equal(module, err ? DWUNW_NO_MODULE : 0);
	dwunw_free(dw);
	return err;
}

static void garbage_is_no_elf_file(void **state)
{
	uint8_t bytes[4096];
	uint32_t seed = 7;

	(void)state;
	assert_int_equal(add_image("", 0), DWUNW_ERR_ELF);
	assert_int_equal(add_image("#!/bin/sh\n", 10), DWUNW_ERR_ELF);
	assert_int_equal(add_image("!<arch>\n", 8), DWUNW_ERR_ELF);
	assert_int_equal(add_image("\177ELF", 4), DWUNW_ERR_ELF);
	for (int round = 0; round < 100; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1103515245 + 12345;
			bytes[i] = (uint8_t)(seed >> 16);
		}
		assert_int_equal(add_image(bytes, sizeof(bytes)), DWUNW_ERR_ELF);
	}
}

static void other_machines_are_refused(void **state)
{
	struct copy copy = read_self();
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)copy.bytes;

	(void)state;
	assert_int_equal(add_image(copy.bytes, copy.len), 0);
	ehdr->e_type = ET_REL;
	assert_int_equal(add_image(copy.bytes, copy.len), DWUNW_ERR_ELF);
	ehdr->e_type = ET_DYN;
	ehdr->e_machine = EM_AARCH64;
	assert_int_equal(add_image(copy.bytes, copy.len), DWUNW_ERR_ARCH);
	ehdr->e_machine = EM_X86_64;
	ehdr->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(add_image(copy.bytes, copy.len), DWUNW_ERR_ARCH);
	free(copy.bytes);
}

/* A cut image may lack anything; ASan sees a look beyond its end. */
static void a_cut_image_is_survived(void **state)
{
	struct copy copy = read_self();

	(void)state;
	for (size_t len = 0; len < copy.len; len += len < 2048 ? 61 : copy.len / 97) {
		struct dwunw_frame frame = {.addr = 0x4000};
		struct dwunw_symbol symbol;
		uint8_t *exact = malloc(len ? len : 1);
		struct dwunw *dw;

		memcpy(exact, copy.bytes, len);
		assert_int_equal(dwunw_new(&dw), 0);
		if (!dwunw_module_add(dw, &frame.module, "/x", exact, len))
			assert_int_equal(dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol), 0);
		dwunw_free(dw);
		free(exact);
	}
	free(copy.bytes);
}

static void debug_information_in_the_image_is_used(void **state)
{
	struct copy copy = read_self();

	(void)state;
	assert_true(finds_lines(&copy, "/nowhere", NULL));
	hide_debug_info(&copy);
	assert_false(finds_lines(&copy, "/nowhere", NULL));
	free(copy.bytes);
}

static void the_file_at_the_path_is_used_if_it_is_the_same(void **state)
{
	struct copy image = read_self(), other = read_self();

	(void)state;
	hide_debug_info(&image);
	assert_true(finds_lines(&image, image.path, NULL));
	assert_false(finds_lines(&image, "/bin/true", NULL));
	build_id(&other)[19] ^= 1;
	write_file(in_scratch("other"), &other);
	assert_false(finds_lines(&image, in_scratch("other"), NULL));
	assert_false(finds_lines(&image, "relative", NULL));
	assert_false(finds_lines(&image, "", NULL));
	free(other.bytes);
	free(image.bytes);
}

static void only_regular_files_are_opened(void **state)
{
	struct copy image = read_self();

	(void)state;
	hide_debug_info(&image);
	assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
	assert_false(finds_lines(&image, in_scratch("fifo"), NULL)); /* and does not wait */
	assert_false(finds_lines(&image, scratch, NULL));
	assert_false(finds_lines(&image, "/dev/zero", NULL));
	free(image.bytes);
}

static void a_debug_directory_is_searched_by_build_id(void **state)
{
	struct copy image = read_self(), whole = read_self();
	char name[128], dir[256];

	(void)state;
	snprintf(dir, sizeof(dir), "%s", in_scratch("debug"));
	make_dir("debug");
	make_dir("debug/.build-id");
	snprintf(name, sizeof(name), "debug/.build-id/%.2s", image.id);
	make_dir(name);
	snprintf(name, sizeof(name), "debug/.build-id/%.2s/%s.debug", image.id, image.id + 2);
	write_file(in_scratch(name), &whole);
	hide_debug_info(&image);
	assert_true(finds_lines(&image, "/nowhere", dir));
	assert_false(finds_lines(&image, "/nowhere", NULL));
	/* The name of the file promises the build-id, but only the file itself is believed. */
	build_id(&whole)[0] ^= 1;
	write_file(in_scratch(name), &whole);
	assert_false(finds_lines(&image, "/nowhere", dir));
	free(whole.bytes);
	free(image.bytes);
}

static void a_debug_link_is_followed(void **state)
{
	struct copy image = read_self(), whole = read_self();
	static const char *const places[] = {"lib/x.debug", "lib/.debug/x.debug"};
	char path[256], in_dir[512];

	(void)state;
	make_dir("lib");
	make_dir("lib/.debug");
	snprintf(path, sizeof(path), "%s", in_scratch("lib/x.so"));
	hide_debug_info(&image);
	set_debug_link(&image, "x.debug");
	for (size_t i = 0; i < 2; i++) {
		assert_false(finds_lines(&image, path, NULL));
		write_file(in_scratch(places[i]), &whole);
		assert_true(finds_lines(&image, path, NULL));
		unlink(in_scratch(places[i]));
	}
	/* DIR + dirname(path) + NAME, with the scratch directory as both DIR and what is below it.
	 */
	write_file(in_scratch("lib/x.debug"), &whole);
	snprintf(in_dir, sizeof(in_dir), "%s/", scratch);
	assert_true(finds_lines(&image, "/lib/x.so", in_dir));
	assert_false(finds_lines(&image, "/lib/x.so", NULL));
	build_id(&whole)[3] ^= 1;
	write_file(in_scratch("lib/x.debug"), &whole);
	assert_false(finds_lines(&image, path, NULL));
	free(whole.bytes);
	free(image.bytes);
}

static void a_debug_link_leads_nowhere_else(void **state)
{
	struct copy image = read_self(), whole = read_self();

	(void)state;
	make_dir("lib");
	write_file(in_scratch("y.debug"), &whole);
	hide_debug_info(&image);
	set_debug_link(&image, "../y.debug");
	assert_false(finds_lines(&image, in_scratch("lib/x.so"), NULL));
	free(whole.bytes);
	free(image.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_is_no_elf_file),
		cmocka_unit_test(other_machines_are_refused),
		cmocka_unit_test(a_cut_image_is_survived),
		cmocka_unit_test(debug_information_in_the_image_is_used),
		cmocka_unit_test(the_file_at_the_path_is_used_if_it_is_the_same),
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(a_debug_directory_is_searched_by_build_id),
		cmocka_unit_test(a_debug_link_is_followed),
		cmocka_unit_test(a_debug_link_leads_nowhere_else),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
