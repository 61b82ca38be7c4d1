/* test_record_kernel_image.c - the ELF file of the kernel, as libelf and libdwunw read it */
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/kernel/kernel_image.h"
#include "unwind/dwunw.h"

#define START 0xffffffff81000000ull
#define END   0xffffffff82000000ull
#define STACK 0xffffc90000000000ull

static const struct kernel_function functions[] = {
	{.addr = START + 0x1000, .size = 0x100, .name = "kmem_cache_alloc_noprof"},
	{.addr = START + 0x2000, .size = 0x40, .name = "alloc_empty_file"},
	{.addr = END - 0x10, .size = 0x10, .name = "the_very_last"},
};

#define NR (sizeof(functions) / sizeof(functions[0]))

static const struct kernel_image whole = {
	.start = START,
	.end = END,
	.id = {.len = 21, .bytes = {MLK_ID_BUILD_ID, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	.functions = functions,
	.nr = NR,
};

/* The file of @what as libelf has it; *@bytes is released with free() after elf_end(). */
static Elf *open_elf(const struct kernel_image *what, uint8_t **bytes)
{
	size_t len;
	Elf *elf;

	assert_int_equal(kernel_image_make(what, bytes, &len), 0);
	assert_true(elf_version(EV_CURRENT) != EV_NONE);
	elf = elf_memory((char *)*bytes, len);
	assert_non_null(elf);
	assert_int_equal(elf_kind(elf), ELF_K_ELF);
	return elf;
}

static Elf_Scn *section(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *found = NULL;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((found = elf_nextscn(elf, found)) != NULL) {
		assert_non_null(gelf_getshdr(found, header));
		if (!strcmp(elf_strptr(elf, names, header->sh_name), name))
			return found;
	}
	return NULL;
}

static void the_note_has_the_build_id(void **state)
{
	uint8_t *bytes;
	Elf *elf = open_elf(&whole, &bytes);
	GElf_Shdr header;
	Elf_Scn *notes = section(elf, ".note.gnu.build-id", &header);
	GElf_Nhdr note;
	size_t name, desc;
	Elf_Data *data;

	(void)state;
	assert_non_null(notes);
	assert_int_equal(header.sh_type, SHT_NOTE);
	data = elf_getdata(notes, NULL);
	assert_non_null(data);
	assert_int_equal(gelf_getnote(data, 0, &note, &name, &desc), data->d_size);
	assert_int_equal(note.n_type, NT_GNU_BUILD_ID);
	assert_int_equal(note.n_descsz, 20);
	assert_memory_equal((uint8_t *)data->d_buf + name, "GNU", 4);
	assert_memory_equal((uint8_t *)data->d_buf + desc, whole.id.bytes + 1, 20);
	elf_end(elf);
	free(bytes);
}

static void another_id_is_no_note(void **state)
{
	struct kernel_image other = whole;
	uint8_t *bytes;
	GElf_Shdr header;
	Elf *elf;

	(void)state;
	other.id.bytes[0] = MLK_ID_BUILD_ID + 1;
	elf = open_elf(&other, &bytes);
	assert_true(!section(elf, ".note.gnu.build-id", &header) || header.sh_size == 0);
	elf_end(elf);
	free(bytes);
}

static void the_symbols_are_the_functions(void **state)
{
	uint8_t *bytes;
	Elf *elf = open_elf(&whole, &bytes);
	GElf_Shdr header;
	Elf_Scn *symbols = section(elf, ".symtab", &header);
	Elf_Data *data;

	(void)state;
	assert_non_null(symbols);
	assert_int_equal(header.sh_size / header.sh_entsize, NR + 1);
	data = elf_getdata(symbols, NULL);
	assert_non_null(data);
	for (size_t i = 0; i < NR; i++) {
		GElf_Sym symbol;

		assert_non_null(gelf_getsym(data, (int)i + 1, &symbol));
		assert_int_equal(GELF_ST_TYPE(symbol.st_info), STT_FUNC);
		assert_true(symbol.st_value == functions[i].addr);
		assert_true(symbol.st_size == functions[i].size);
		assert_string_equal(elf_strptr(elf, header.sh_link, symbol.st_name),
				    functions[i].name);
	}
	elf_end(elf);
	free(bytes);
}

static void code_is_mapped_where_it_ran(void **state)
{
	const struct kernel_image empty = {.start = START, .end = END};
	uint8_t *bytes;
	Elf *elf = open_elf(&empty, &bytes);
	GElf_Phdr code;

	(void)state;
	assert_non_null(gelf_getphdr(elf, 0, &code));
	assert_int_equal(code.p_type, PT_LOAD);
	assert_true(code.p_vaddr == START && code.p_memsz == END - START);
	elf_end(elf);
	free(bytes);
}

/* A space in which @bytes are mapped as the recorder says it. */
static struct dwunw_space *space_of(struct dwunw *dw, const uint8_t *bytes, size_t len)
{
	struct dwunw_mapping map = {.start = START, .end = END};
	struct dwunw_space *space;

	assert_int_equal(dwunw_module_add(dw, &map.module, "[kernel]", bytes, len), 0);
	assert_int_equal(dwunw_space_new(&space, dw, &map, 1), 0);
	return space;
}

static struct dwunw_result unwind(struct dwunw_space *space, uint64_t pc, const uint64_t *words,
				  size_t nr, struct dwunw_frame *frames, size_t room)
{
	uint64_t regs[DWUNW_MAX_ARCH_REGS] = {[DWUNW_X86_64_RSP] = STACK, [DWUNW_X86_64_RIP] = pc};
	const struct dwunw_stack stack = {
		.addr = STACK, .bytes = (const uint8_t *)words, .len = nr * sizeof(*words)};
	struct dwunw_regset set;
	const struct dwunw_sample sample = {.regs = &set,
					    .stack = &stack,
					    .stale_from = UINT64_MAX,
					    .unchanged_from = UINT64_MAX};
	struct dwunw_result result;

	assert_int_equal(
		dwunw_regset_prepare(&set, regs, DWUNW_MAX_ARCH_REGS, DWUNW_EVENT_RETURN_ADDRESS),
		0);
	assert_int_equal(dwunw_capture(space, &sample, frames, room, &result), 0);
	return result;
}

static void each_word_of_the_stack_is_a_frame(void **state)
{
	/* The last return address is that behind the last instruction of all. */
	const uint64_t words[] = {START + 0x2001, END - 1, START + 0x1100, 0};
	const uint64_t pcs[] = {START + 0x1040, START + 0x2001, END - 1, START + 0x1100};
	const char *const called[] = {functions[0].name, functions[1].name, functions[2].name,
				      functions[0].name};
	struct dwunw_frame frames[8];
	struct dwunw_symbol symbols[8];
	struct dwunw_result result;
	struct dwunw_space *space;
	struct dwunw *dw;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(kernel_image_make(&whole, &bytes, &len), 0);
	assert_int_equal(dwunw_new(&dw), 0);
	space = space_of(dw, bytes, len);
	result = unwind(space, pcs[0], words, 4, frames, 8);
	assert_int_equal(result.status, DWUNW_STATUS_ENDED);
	assert_int_equal(result.nr_frames, 4);
	assert_int_equal(dwunw_symbol_resolve_batch(dw, frames, 4, symbols), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_true(frames[i].pc == pcs[i]);
		assert_string_equal(symbols[i].function, called[i]);
	}
	/* A stack that was cut, without the 0 at its end. */
	assert_int_equal(unwind(space, pcs[0], words, 2, frames, 8).status, DWUNW_STATUS_TRUNCATED);
	dwunw_space_free(space);
	dwunw_free(dw);
	free(bytes);
}

static void the_build_id_is_found_among_notes(void **state)
{
	static const uint8_t notes[] = {4,   0, 0, 0, 3,   0,	0,   0, 1, 0, 0, 0, 'X', 'e',
					'n', 0, 9, 9, 9,   0,	4,   0, 0, 0, 2, 0, 0,	 0,
					3,   0, 0, 0, 'G', 'N', 'U', 0, 7, 8, 0, 0};
	char path[] = "/tmp/test_record_kernel_image.XXXXXX";
	int fd = mkstemp(path);
	struct mlk_id id;

	(void)state;
	assert_true(fd >= 0);
	for (size_t len = 0; len <= sizeof(notes); len++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, notes, len, 0), len);
		kernel_image_build_id(path, &id);
		/* Two bytes of padding may be missing. */
		assert_int_equal(id.len, len < sizeof(notes) - 2 ? 0 : 3);
	}
	assert_memory_equal(id.bytes, ((uint8_t[]){MLK_ID_BUILD_ID, 7, 8}), 3);
	close(fd);
	unlink(path);
	kernel_image_build_id("/nowhere", &id);
	assert_int_equal(id.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_note_has_the_build_id),
		cmocka_unit_test(another_id_is_no_note),
		cmocka_unit_test(the_symbols_are_the_functions),
		cmocka_unit_test(code_is_mapped_where_it_ran),
		cmocka_unit_test(each_word_of_the_stack_is_a_frame),
		cmocka_unit_test(the_build_id_is_found_among_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
