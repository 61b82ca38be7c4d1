/* fuzz_cfi.c - an input as .eh_frame, .eh_frame_hdr and .debug_frame of a file, and addresses
 *
 * Head: a byte of flags, the lengths of .eh_frame_hdr and .debug_frame (two bytes each), then those
 * two sections; the rest is .eh_frame.  Flags: 1 .eh_frame_hdr comes last, 2 no section headers,
 * 4 .debug_frame is compressed, 8 it is called .zdebug_frame.
 */
#include <gelf.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/unwind_cfi_image.h"
#include "unwind/cfi/cfi.h"

#define MEMORY_MAX (256u << 20)
#define NR_ADDRS   48

static const uint8_t *cut(struct fuzz_in *in, size_t *len)
{
	const uint8_t *at = in->at;

	if (*len > fuzz_left(in))
		*len = fuzz_left(in);
	in->at += *len;
	return at;
}

static struct cfi_image parts(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	uint64_t flags = fuzz_take(&in, 1);
	struct cfi_image image = {.hdr_last = flags & 1,
				  .no_sections = flags & 2,
				  .debug_flags = flags & 4 ? SHF_COMPRESSED : 0,
				  .debug_name = flags & 8 ? ".zdebug_frame" : NULL,
				  .hdr_len = fuzz_take(&in, 2),
				  .debug_len = fuzz_take(&in, 2)};

	image.hdr = cut(&in, &image.hdr_len);
	image.debug = cut(&in, &image.debug_len);
	image.eh_len = fuzz_left(&in);
	image.eh = in.at;
	return image;
}

static void check_rules(const struct dwunw_cfi_rules *rules, uint64_t addr, const uint8_t *image,
			size_t len)
{
	const struct dwunw_cfi_rule *rule = &rules->cfa;

	FUZZ_CHECK(rules->start <= addr && addr < rules->end);
	for (int i = -1; i < DWUNW_CFI_REGS; i++, rule = &rules->reg[i]) {
		FUZZ_CHECK(rule->kind <= DWUNW_CFI_VAL_EXPR);
		/* Expressions stand in the file, or in what was uncompressed. */
		if (rule->kind >= DWUNW_CFI_EXPR && rule->expr_len) {
			volatile uint8_t first = rule->expr[0], last;

			last = rule->expr[rule->expr_len - 1];
			(void)first;
			(void)last;
			FUZZ_CHECK(rule->expr < image || rule->expr >= image + len ||
				   (size_t)(image + len - rule->expr) >= rule->expr_len);
		}
	}
}

static void check_row(const struct dwunw_cfi_row *row)
{
	FUZZ_CHECK(row->kind <= DWUNW_CFI_FULL && row->nr_saved <= DWUNW_CFI_MAX_SAVED);
	FUZZ_CHECK(!row->full == (row->kind != DWUNW_CFI_FULL));
	FUZZ_CHECK(row->kind != DWUNW_CFI_SIMPLE || row->cfa_shape == DWUNW_CFA_REG_OFFSET);
	FUZZ_CHECK(row->cfa_shape == DWUNW_CFA_OTHER || row->cfa_reg < DWUNW_CFI_REGS);
	for (unsigned int i = 0; i < row->nr_saved; i++)
		FUZZ_CHECK(DWUNW_CFI_CALLEE_SAVED & 1u << row->reg[i]);
}

/* @order turns the addresses round: what was found before must not change what is found. */
static void look_up(Elf *elf, const uint8_t *image, size_t len, bool order, uint8_t *kinds)
{
	struct dwunw_cfi *cfi = dwunw_cfi_new(elf);
	const struct dwunw_cfi_row *row;
	struct dwunw_cfi_rules rules;

	FUZZ_CHECK(cfi);
	for (uint64_t i = 0; i < NR_ADDRS; i++) {
		uint64_t nr = order ? NR_ADDRS - 1 - i : i, addr = nr * nr * 3;
		int found;

		if (nr > NR_ADDRS - 4)
			addr = UINT64_MAX - (NR_ADDRS - nr) + 1;
		found = dwunw_cfi_rules_at(cfi, addr, &rules);
		FUZZ_CHECK(found == 0 || found == 1);
		if (found)
			check_rules(&rules, addr, image, len);
		FUZZ_CHECK(dwunw_cfi_find(cfi, addr, &row) == 0);
		check_row(row);
		FUZZ_CHECK(found || row->kind == DWUNW_CFI_NONE);
		FUZZ_CHECK(!order || kinds[nr] == row->kind);
		kinds[nr] = row->kind;
	}
	dwunw_cfi_free(cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_image image = parts(data, size);
	uint8_t kinds[NR_ADDRS];
	size_t len;
	uint8_t *bytes = cfi_image_make(&image, &len);
	Elf *elf;

	fuzz_memory_limit(MEMORY_MAX);
	elf_version(EV_CURRENT);
	FUZZ_CHECK(bytes);
	elf = elf_memory((char *)bytes, len);
	FUZZ_CHECK(elf);
	look_up(elf, bytes, len, false, kinds);
	look_up(elf, bytes, len, true, kinds);
	elf_end(elf);
	free(bytes);
	return 0;
}
