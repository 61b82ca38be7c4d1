/* test_unwind_cfi_spans.c - rows that addresses share are those that each would have by itself */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/cfi/cfi.h"
#include "unwind/cfi/cfi_spans.h"
#include "unwind/elf/elf_util.h"

#define STRIDE 7919 /* bytes, a prime: addresses are met in no order */

/* Compare what @cfi, which has met many addresses, says of @addr with the rules made for it alone.
 * Returns whether there are any. */
static bool check_address(struct dwunw_cfi *cfi, struct dwunw_cfi *alone, uint64_t addr)
{
	const struct dwunw_cfi_row *row;
	struct dwunw_cfi_rules rules;
	int found = dwunw_cfi_rules_at(alone, addr, &rules);

	assert_int_equal(dwunw_cfi_find(cfi, addr, &row), 0);
	if (found <= 0 || row->kind != DWUNW_CFI_SIMPLE) {
		assert_true(found > 0 || row->kind == DWUNW_CFI_NONE);
		return found > 0;
	}
	assert_int_equal(row->cfa_reg, rules.cfa.reg);
	assert_int_equal(row->cfa_off, rules.cfa.off);
	for (unsigned int i = 0; i < row->nr_saved; i++) {
		assert_int_equal(rules.reg[row->reg[i]].kind, DWUNW_CFI_OFFSET);
		assert_true((uint64_t)(int64_t)row->off[i] == rules.reg[row->reg[i]].off);
	}
	return true;
}

/* Each byte of this program's code. */
static void every_address_has_its_own_rules(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct dwunw_cfi *cfi, *alone;
	size_t found = 0;
	GElf_Shdr text;
	Elf *elf;

	(void)state;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_non_null(dwunw_elf_section(elf, ".text", &text));
	cfi = dwunw_cfi_new(elf);
	alone = dwunw_cfi_new(elf);
	assert_true(cfi && alone);
	for (uint64_t i = 0; i < text.sh_size; i++)
		found += check_address(cfi, alone, text.sh_addr + i * STRIDE % text.sh_size);
	assert_true(found > text.sh_size / 2);
	dwunw_cfi_free(alone);
	dwunw_cfi_free(cfi);
	elf_end(elf);
	close(fd);
}

/* However many rows a function has, so many are kept, and none is taken for another. */
static void rows_of_a_function_are_bounded(void **state)
{
	struct dwunw_cfi_spans spans = {0};

	(void)state;
	assert_int_equal(dwunw_cfi_spans_find(&spans, 1, 16), DWUNW_NOT_FOUND);
	for (uint32_t i = 0; i < 3 * DWUNW_CFI_MAX_SPANS; i++)
		for (uint64_t function = 1; function < 4; function++)
			dwunw_cfi_spans_add(&spans, function, 16 * i, 16 * i + 8,
					    i + 1000 * (uint32_t)function);
	assert_int_equal(spans.nr, 3 * DWUNW_CFI_MAX_SPANS);
	for (uint32_t i = 0; i < 3 * DWUNW_CFI_MAX_SPANS; i++) {
		const uint32_t kept = i < DWUNW_CFI_MAX_SPANS ? i + 2000 : DWUNW_NOT_FOUND;

		assert_int_equal(dwunw_cfi_spans_find(&spans, 2, 16 * i), kept);
		assert_int_equal(dwunw_cfi_spans_find(&spans, 2, 16 * i + 7), kept);
		assert_int_equal(dwunw_cfi_spans_find(&spans, 2, 16 * i + 8), DWUNW_NOT_FOUND);
	}
	dwunw_cfi_spans_release(&spans);
}

/* One beyond 4 GiB is kept in part: what is found is right. */
static void a_row_of_everything_is_cut(void **state)
{
	struct dwunw_cfi_spans spans = {0};

	(void)state;
	dwunw_cfi_spans_add(&spans, 7, 16, UINT64_MAX, 5);
	assert_int_equal(dwunw_cfi_spans_find(&spans, 7, 15), DWUNW_NOT_FOUND);
	assert_int_equal(dwunw_cfi_spans_find(&spans, 7, 16), 5);
	assert_int_equal(dwunw_cfi_spans_find(&spans, 7, UINT32_MAX), 5);
	assert_int_equal(dwunw_cfi_spans_find(&spans, 7, UINT64_MAX), DWUNW_NOT_FOUND);
	dwunw_cfi_spans_release(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_address_has_its_own_rules),
		cmocka_unit_test(rows_of_a_function_are_bounded),
		cmocka_unit_test(a_row_of_everything_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
