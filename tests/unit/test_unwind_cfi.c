/* test_unwind_cfi.c - call frame information that is made to keep its reader busy */
#include <dwarf.h>
#include <elf.h>

#include "tests/unit/unwind_live.h"

#define BASE	 0x10000 /* where the image is mapped */
#define CODE	 0x100	 /* in the image */
#define FRAME_AT 0x1000	 /* .eh_frame, address and offset */
#define HDR_AT	 0x200

/* An ELF file that is only call frame information. */
struct image {
	uint8_t *bytes;
	size_t len; /* of .eh_frame */
	size_t nr_table;
	int32_t table[4][2]; /* of .eh_frame_hdr: place of the code, FDE */
};

static const char names[] = "\0.eh_frame_hdr\0.eh_frame\0.shstrtab";

static struct image new_image(void)
{
	struct image image = {.bytes = calloc(1, 1 << 20)};

	assert_non_null(image.bytes);
	return image;
}

static void put(struct image *image, const void *bytes, size_t len)
{
	memcpy(image->bytes + FRAME_AT + image->len, bytes, len);
	image->len += len;
}

static void put_number(struct image *image, uint64_t number, size_t size)
{
	put(image, &number, size);
}

static void put_filler(struct image *image, uint8_t op, size_t len)
{
	memset(image->bytes + FRAME_AT + image->len, op, len);
	image->len += len;
}

/* A CIE: CFA = rsp + 8, the return address just below; then @filler times DW_CFA_nop. */
static void put_cie(struct image *image, size_t filler)
{
	static const uint8_t cie[] = {1, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16,
				      1};

	put_number(image, 4 + sizeof(cie) + filler, 4);
	put_number(image, 0, 4);
	put(image, cie, sizeof(cie));
	put_filler(image, DW_CFA_nop, filler);
}

/* The head of an FDE for @code, of the CIE at 0, that is followed by @filler bytes of
 * instructions. */
static void put_fde(struct image *image, uint64_t code, size_t filler)
{
	put_number(image, 4 + 16 + filler, 4);
	put_number(image, image->len, 4);
	put_number(image, code, 8);
	put_number(image, 0x10, 8);
}

static Elf64_Shdr section(const char *name, uint32_t type, uint64_t at, size_t len)
{
	const char *found = memmem(names, sizeof(names), name, strlen(name) + 1);

	return (Elf64_Shdr){.sh_name = (uint32_t)(found - names),
			    .sh_type = type,
			    .sh_addr = at,
			    .sh_offset = at,
			    .sh_size = len};
}

/* Write the headers of @image, with a table of addresses if there is one; returns its length. */
static size_t finish(struct image *image)
{
	size_t names_at = FRAME_AT + image->len, shoff = (names_at + sizeof(names) + 7) & ~7ull;
	const Elf64_Ehdr ehdr = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
				 .e_type = ET_DYN,
				 .e_machine = EM_X86_64,
				 .e_version = 1,
				 .e_phoff = sizeof(ehdr),
				 .e_shoff = shoff,
				 .e_ehsize = sizeof(ehdr),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 1,
				 .e_shentsize = sizeof(Elf64_Shdr),
				 .e_shnum = 4,
				 .e_shstrndx = 1};
	const Elf64_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = shoff, .p_memsz = shoff};
	const Elf64_Shdr sections[] = {
		{0},
		section(".shstrtab", SHT_STRTAB, names_at, sizeof(names)),
		section(image->nr_table ? ".eh_frame_hdr" : "", SHT_PROGBITS, HDR_AT,
			12 + 8 * image->nr_table),
		section(".eh_frame", SHT_PROGBITS, FRAME_AT, image->len),
	};
	const uint8_t hdr[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
			       DW_EH_PE_datarel | DW_EH_PE_sdata4};
	const int32_t to_frame = FRAME_AT - HDR_AT - 4, nr = (int32_t)image->nr_table;

	memcpy(image->bytes, &ehdr, sizeof(ehdr));
	memcpy(image->bytes + sizeof(ehdr), &load, sizeof(load));
	memcpy(image->bytes + HDR_AT, hdr, sizeof(hdr));
	memcpy(image->bytes + HDR_AT + 4, &to_frame, 4);
	memcpy(image->bytes + HDR_AT + 8, &nr, 4);
	memcpy(image->bytes + HDR_AT + 12, image->table, 8 * image->nr_table);
	memcpy(image->bytes + names_at, names, sizeof(names));
	memcpy(image->bytes + shoff, sections, sizeof(sections));
	return shoff + sizeof(sections);
}

/* Unwind from CODE in @image, and free it.  ENDED means that the information was used. */
static enum dwunw_status unwind(struct image *image)
{
	static const uint64_t words[2];
	size_t len = finish(image);
	struct dwunw_mapping map = {.start = BASE, .end = BASE + 0x1000};
	struct dwunw_stack stack = {0x7000, (const uint8_t *)words, sizeof(words)};
	struct dwunw_regset rs = {.known = (1u << DWUNW_MAX_ARCH_REGS) - 1};
	struct dwunw_frame frames[4];
	struct dwunw_space *space;
	enum dwunw_status status;
	struct dwunw *dw;

	rs.reg[DWUNW_X86_64_RIP] = BASE + CODE;
	rs.reg[DWUNW_X86_64_RSP] = 0x7000;
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(dwunw_module_add(dw, &map.module, "/x", image->bytes, len), 0);
	assert_int_equal(dwunw_space_new(&space, dw, &map, 1), 0);
	assert_int_equal(unwind_once(space, PLAIN_SAMPLE(&rs, &stack), frames, 4, &status), 1);
	dwunw_space_free(space);
	dwunw_free(dw);
	free(image->bytes);
	return status;
}

static void instructions_of_a_sensible_length_are_used(void **state)
{
	struct image image = new_image();

	(void)state;
	put_cie(&image, 0);
	put_fde(&image, CODE, 60000);
	put_filler(&image, DW_CFA_remember_state, 60000);
	assert_int_equal(unwind(&image), DWUNW_STATUS_ENDED);
}

static void longer_ones_are_refused(void **state)
{
	struct image image = new_image();

	(void)state;
	put_cie(&image, 0);
	put_fde(&image, CODE, 70000);
	put_filler(&image, DW_CFA_remember_state, 70000);
	assert_int_equal(unwind(&image), DWUNW_STATUS_NO_CFI);
}

static void also_those_that_a_cie_begins_with(void **state)
{
	struct image image = new_image();

	(void)state;
	put_cie(&image, 70000);
	put_fde(&image, CODE, 0);
	assert_int_equal(unwind(&image), DWUNW_STATUS_NO_CFI);
}

/* Two FDEs of other code; if @hidden, in the first begins another that reaches over the second, and
 * the table leads to it. */
static struct image overlapping(bool hidden)
{
	struct image image = new_image();

	put_cie(&image, 0);
	put_fde(&image, CODE + 0x10, 80000);
	image.table[0][0] = CODE - HDR_AT;
	image.table[0][1] = (int32_t)(FRAME_AT + image.len - HDR_AT);
	image.nr_table = 1;
	if (hidden)
		put_fde(&image, CODE, 79000 + 80000);
	else
		put_fde(&image, CODE, 30000);
	put_filler(&image, DW_CFA_nop, 80000 - 24);
	put_fde(&image, CODE + 0x20, 80000);
	put_filler(&image, DW_CFA_nop, 80000);
	return image;
}

static void an_entry_hidden_in_others_is_found(void **state)
{
	struct image image = overlapping(false);

	(void)state;
	assert_int_equal(unwind(&image), DWUNW_STATUS_ENDED);
	image = overlapping(true);
	assert_int_equal(unwind(&image), DWUNW_STATUS_NO_CFI);
}

static void a_table_beyond_its_section_is_refused(void **state)
{
	struct image image = overlapping(false);
	size_t len = finish(&image);
	uint32_t nr = 1 << 30, module;
	struct dwunw_mapping map = {.start = BASE, .end = BASE + 0x1000};
	struct dwunw_frame frame;
	struct dwunw_regset rs = {.reg[DWUNW_X86_64_RIP] = BASE + CODE, .known = 1u << 16};
	struct dwunw_stack stack = {0};
	struct dwunw_space *space;
	enum dwunw_status status;
	struct dwunw *dw;

	(void)state;
	memcpy(image.bytes + HDR_AT + 8, &nr, 4);
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(dwunw_module_add(dw, &module, "/x", image.bytes, len), 0);
	assert_int_equal(dwunw_space_new(&space, dw, &map, 1), 0);
	assert_int_equal(unwind_once(space, PLAIN_SAMPLE(&rs, &stack), &frame, 1, &status), 1);
	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	dwunw_space_free(space);
	dwunw_free(dw);
	free(image.bytes);
}

static void an_unknown_instruction_spoils_only_what_follows(void **state)
{
	struct image image = new_image();

	(void)state;
	put_cie(&image, 0);
	put_fde(&image, CODE, 4);
	put_number(&image, DW_CFA_advance_loc | 1 | 0x3f00, 4); /* beyond CODE, then nonsense */
	assert_int_equal(unwind(&image), DWUNW_STATUS_ENDED);
	image = new_image();
	put_cie(&image, 0);
	put_fde(&image, CODE, 4);
	put_number(&image, 0x3f, 4);
	assert_int_equal(unwind(&image), DWUNW_STATUS_NO_CFI);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_of_a_sensible_length_are_used),
		cmocka_unit_test(longer_ones_are_refused),
		cmocka_unit_test(also_those_that_a_cie_begins_with),
		cmocka_unit_test(an_entry_hidden_in_others_is_found),
		cmocka_unit_test(a_table_beyond_its_section_is_refused),
		cmocka_unit_test(an_unknown_instruction_spoils_only_what_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
