/* test_unwind_cfi_table.c - the FDE of an address is found whatever the tables are like */
#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "tests/unit/unwind_cfi_image.h"
#include "unwind/cfi/cfi.h"

#define NR_FDES 40
/* FDE i is for 16 bytes at CODE + 32 i, and its CFA is rsp + 16 + i. */
#define CODE	 0x100000
#define HDR_ROOM 1024

/* Sections while they are put together. */
struct pieces {
	uint8_t eh[4096], hdr[HDR_ROOM];
	size_t eh_len, hdr_len;
	size_t cie_at, fde_at[NR_FDES];
};

static void put(uint8_t *to, size_t *len, uint64_t number, size_t size)
{
	memcpy(to + *len, &number, size);
	*len += size;
}

/* A CIE: CFA = rsp + 8, the return address just below, CFA = rsp + 8. */
static void put_cie(struct pieces *p, bool debug)
{
	static const uint8_t body[] = {1, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, 0x90, 1, 0, 0};

	p->cie_at = p->eh_len;
	put(p->eh, &p->eh_len, 4 + sizeof(body), 4);
	put(p->eh, &p->eh_len, debug ? UINT32_MAX : 0, 4);
	memcpy(p->eh + p->eh_len, body, sizeof(body));
	p->eh_len += sizeof(body);
}

static void put_fde(struct pieces *p, size_t nr, bool debug)
{
	p->fde_at[nr] = p->eh_len;
	put(p->eh, &p->eh_len, 4 + 16 + 4, 4);
	put(p->eh, &p->eh_len, debug ? 0 : p->eh_len - p->cie_at, 4);
	put(p->eh, &p->eh_len, CODE + 32 * nr, 8);
	put(p->eh, &p->eh_len, 16, 8);
	put(p->eh, &p->eh_len, DW_CFA_def_cfa_offset | (16 + nr) << 8, 4);
}

/* The section; after each FDE a terminator, if wanted.  If @blind, it begins with an entry that is
 * said to reach beyond the end: who goes from one to the next finds none. */
static void make_frames(struct pieces *p, bool debug, bool terminators, bool blind)
{
	*p = (struct pieces){.eh_len = 0};
	if (blind)
		put(p->eh, &p->eh_len, INT32_MAX, 8);
	put_cie(p, debug);
	for (size_t i = 0; i < NR_FDES; i++) {
		put_fde(p, i, debug);
		if (terminators)
			put(p->eh, &p->eh_len, 0, 4);
	}
}

/* What a table is like. */
struct table_form {
	uint8_t encoding;
	size_t size; /* of a number */
	bool unsorted, last, by_segment;
	bool blind; /* only the table leads to the FDEs */
	int lie;    /* FDEs that the pairs are beside what they should be */
	size_t nr;
};

static void make_table(struct pieces *p, const struct table_form *form, const struct cfi_image *at)
{
	uint64_t base = form->encoding & DW_EH_PE_datarel ? at->hdr_addr : 0;

	p->hdr_len = 0;
	put(p->hdr, &p->hdr_len, 1, 1);
	put(p->hdr, &p->hdr_len, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1);
	put(p->hdr, &p->hdr_len, DW_EH_PE_udata4, 1);
	put(p->hdr, &p->hdr_len, form->encoding, 1);
	put(p->hdr, &p->hdr_len, at->eh_addr - at->hdr_addr - 4, 4);
	put(p->hdr, &p->hdr_len, form->nr, 4);
	for (size_t i = 0; i < NR_FDES && form->size; i++) {
		size_t nr = form->unsorted ? (i * 7) % NR_FDES : i;
		size_t fde = (nr + (size_t)form->lie) % NR_FDES;

		put(p->hdr, &p->hdr_len, CODE + 32 * nr - base, form->size);
		put(p->hdr, &p->hdr_len, at->eh_addr + p->fde_at[fde] - base, form->size);
	}
}

/* Every address of the code has the row of its FDE, and what is between has none. */
static void check_rows(struct cfi_image *image, bool found)
{
	size_t len = 0;
	uint8_t *bytes = cfi_image_make(image, &len);
	const struct dwunw_cfi_row *row;
	struct dwunw_cfi *cfi;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)bytes, len);
	cfi = dwunw_cfi_new(elf);
	assert_non_null(cfi);
	for (uint64_t addr = CODE - 40; addr < CODE + 32 * NR_FDES + 40; addr++) {
		uint64_t nr = (addr - CODE) / 32;
		bool covered = addr >= CODE && nr < NR_FDES && (addr - CODE) % 32 < 16;

		assert_int_equal(dwunw_cfi_find(cfi, addr, &row), 0);
		assert_int_equal(row->kind, covered && found ? DWUNW_CFI_SIMPLE : DWUNW_CFI_NONE);
		if (covered && found)
			assert_int_equal(row->cfa_off, 16 + nr);
	}
	dwunw_cfi_free(cfi);
	elf_end(elf);
	free(bytes);
}

static void check_form(const struct table_form *form)
{
	struct pieces p;
	struct cfi_image image = {.hdr_last = form->last, .no_sections = form->by_segment};

	make_frames(&p, false, false, form->blind);
	image.eh = p.eh;
	image.eh_len = p.eh_len;
	image.hdr = p.hdr;
	image.hdr_len = form->size ? 12 + 2 * form->size * NR_FDES : 12;
	cfi_image_lay_out(&image);
	make_table(&p, form, &image);
	assert_int_equal(p.hdr_len, image.hdr_len);
	check_rows(&image, true);
}

#define USUAL (DW_EH_PE_datarel | DW_EH_PE_sdata4)

static void the_usual_table_is_used(void **state)
{
	(void)state;
	check_form(
		&(struct table_form){.encoding = USUAL, .size = 4, .nr = NR_FDES, .blind = true});
}

static void a_table_behind_the_frames_is_used(void **state)
{
	(void)state;
	check_form(&(struct table_form){
		.encoding = USUAL, .size = 4, .nr = NR_FDES, .blind = true, .last = true});
}

static void a_file_without_section_headers_has_its_segment(void **state)
{
	(void)state;
	check_form(&(struct table_form){
		.encoding = USUAL, .size = 4, .nr = NR_FDES, .blind = true, .by_segment = true});
	check_form(&(struct table_form){.encoding = USUAL,
					.size = 4,
					.nr = NR_FDES,
					.blind = true,
					.by_segment = true,
					.last = true});
}

static void other_encodings_are_read(void **state)
{
	static const struct table_form forms[] = {
		{.encoding = DW_EH_PE_datarel | DW_EH_PE_sdata8, .size = 8},
		{.encoding = DW_EH_PE_datarel | DW_EH_PE_udata8, .size = 8},
		{.encoding = DW_EH_PE_absptr, .size = 8},
		{.encoding = DW_EH_PE_udata4, .size = 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct table_form form = forms[i];

		form.nr = NR_FDES;
		form.blind = true;
		check_form(&form);
	}
}

static void an_unsorted_table_is_no_harm(void **state)
{
	(void)state;
	check_form(&(struct table_form){
		.encoding = USUAL, .size = 4, .nr = NR_FDES, .unsorted = true});
}

static void a_table_that_lies_is_no_harm(void **state)
{
	(void)state;
	for (int lie = 1; lie < 5; lie++)
		check_form(&(struct table_form){
			.encoding = USUAL, .size = 4, .nr = NR_FDES, .lie = lie});
}

static void a_table_of_another_length_is_no_harm(void **state)
{
	static const size_t lengths[] = {0, 1, NR_FDES / 2, NR_FDES + 1, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		check_form(&(struct table_form){.encoding = USUAL, .size = 4, .nr = lengths[i]});
}

static void a_table_left_out_is_no_harm(void **state)
{
	(void)state;
	check_form(&(struct table_form){.encoding = DW_EH_PE_omit});
	check_form(&(struct table_form){.encoding = DW_EH_PE_omit, .by_segment = true});
}

static void no_table_is_no_harm(void **state)
{
	struct cfi_image image = {0};
	struct pieces p;

	(void)state;
	for (int terminators = 0; terminators < 2; terminators++) {
		make_frames(&p, false, terminators, false);
		image.eh = p.eh;
		image.eh_len = p.eh_len;
		check_rows(&image, true);
	}
}

static void debug_frame_alone_is_enough(void **state)
{
	struct cfi_image image = {0};
	struct pieces p;

	(void)state;
	make_frames(&p, true, false, false);
	image.debug = p.eh;
	image.debug_len = p.eh_len;
	check_rows(&image, true);
	/* Its CIE means something else in .eh_frame. */
	image.eh = p.eh;
	image.eh_len = p.eh_len;
	image.debug_len = 0;
	check_rows(&image, false);
}

/* @debug as a compressed section; @head: what stands before the compressed bytes. */
static void check_compressed(const void *head, size_t head_len, const void *packed,
			     size_t packed_len, struct cfi_image image)
{
	uint8_t section[8192];

	memcpy(section, head, head_len);
	memcpy(section + head_len, packed, packed_len);
	image.debug = section;
	image.debug_len = head_len + packed_len;
	check_rows(&image, true);
	section[head_len + 10] ^= 0x55; /* no more what was compressed */
	check_rows(&image, false);
}

static void a_compressed_debug_frame_is_read(void **state)
{
	uint8_t packed[4096];
	uLongf len = sizeof(packed);
	struct pieces p;
	Elf64_Chdr chdr = {.ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 1};
	uint8_t gnu[12] = "ZLIB";
	size_t zstd_len;

	(void)state;
	make_frames(&p, true, false, false);
	chdr.ch_size = p.eh_len;
	assert_int_equal(compress(packed, &len, p.eh, p.eh_len), Z_OK);
	check_compressed(&chdr, sizeof(chdr), packed, len,
			 (struct cfi_image){.debug_flags = SHF_COMPRESSED});
	gnu[10] = (uint8_t)(p.eh_len >> 8);
	gnu[11] = (uint8_t)p.eh_len;
	check_compressed(gnu, sizeof(gnu), packed, len,
			 (struct cfi_image){.debug_name = ".zdebug_frame"});
	chdr.ch_type = 2; /* ELFCOMPRESS_ZSTD */
	zstd_len = ZSTD_compress(packed, sizeof(packed), p.eh, p.eh_len, 3);
	assert_false(ZSTD_isError(zstd_len));
	check_compressed(&chdr, sizeof(chdr), packed, zstd_len,
			 (struct cfi_image){.debug_flags = SHF_COMPRESSED});
}

static void an_absurd_length_is_refused(void **state)
{
	uint8_t packed[4096];
	uLongf len = sizeof(packed);
	struct pieces p;
	Elf64_Chdr chdr = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1ull << 40, .ch_addralign = 1};
	struct cfi_image image = {.debug_flags = SHF_COMPRESSED};
	uint8_t section[8192];

	(void)state;
	make_frames(&p, true, false, false);
	assert_int_equal(compress(packed, &len, p.eh, p.eh_len), Z_OK);
	memcpy(section, &chdr, sizeof(chdr));
	memcpy(section + sizeof(chdr), packed, len);
	image.debug = section;
	image.debug_len = sizeof(chdr) + len;
	check_rows(&image, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_usual_table_is_used),
		cmocka_unit_test(a_table_behind_the_frames_is_used),
		cmocka_unit_test(a_file_without_section_headers_has_its_segment),
		cmocka_unit_test(other_encodings_are_read),
		cmocka_unit_test(an_unsorted_table_is_no_harm),
		cmocka_unit_test(a_table_that_lies_is_no_harm),
		cmocka_unit_test(a_table_of_another_length_is_no_harm),
		cmocka_unit_test(a_table_left_out_is_no_harm),
		cmocka_unit_test(no_table_is_no_harm),
		cmocka_unit_test(debug_frame_alone_is_enough),
		cmocka_unit_test(a_compressed_debug_frame_is_read),
		cmocka_unit_test(an_absurd_length_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
