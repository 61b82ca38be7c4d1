/* test_record_kernel_orc.c - entries of the kernel's tables for its unwinder, of all its versions
 *
 * The structures are those of arch/x86/include/asm/orc_types.h of Linux 6.1, 6.3 and 6.12.  The
 * compiler says which bits their members have, and entries are filled in by their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/kernel/kernel_orc_entry.h"

/* Registers, as all versions number them. */
enum { NONE, PREV_SP, DX, DI, BP, SP, R10, R13, BP_INDIRECT, SP_INDIRECT };

/* Types, as they do not. */
enum { OLD_CALL, OLD_REGS, OLD_PARTIAL };
enum { UNDEFINED, END, CALL, REGS, PARTIAL };

struct orc_6_1 {
	int16_t sp_offset, bp_offset;
	unsigned int sp_reg : 4, bp_reg : 4, type : 2, end : 1;
} __attribute__((packed));

struct orc_6_3 {
	int16_t sp_offset, bp_offset;
	unsigned int sp_reg : 4, bp_reg : 4, type : 2, signal : 1, end : 1;
} __attribute__((packed));

struct orc_6_12 {
	int16_t sp_offset, bp_offset;
	unsigned int sp_reg : 4, bp_reg : 4, type : 3, signal : 1;
} __attribute__((packed));

static const struct orc_format new_format, format_6_1 = {.has_old_types = true, .end_bit = 42},
					   format_6_3 = {.has_old_types = true, .end_bit = 43};

/* The bytes of an entry, with others behind them as in a table. */
#define WORD(version, ...) word(&(const struct orc_##version){__VA_ARGS__})

static uint64_t word(const void *entry)
{
	uint64_t word = UINT64_MAX;

	memcpy(&word, entry, ORC_ENTRY);
	return word;
}

static struct kernel_orc_frame decoded(const struct orc_format *f, uint64_t entry)
{
	struct kernel_orc_frame frame;

	orc_decode(f, entry, &frame);
	return frame;
}

static void check_call(const struct kernel_orc_frame *f, int cfa, int32_t offset, int32_t saved)
{
	assert_int_equal(f->kind, KERNEL_ORC_CALL);
	assert_int_equal(f->cfa, cfa);
	assert_int_equal(f->offset, offset);
	assert_int_equal(f->saved, saved);
	assert_false(f->saved_at);
}

/* What an entry of a call says, in each version. */
#define CHECK_CALL(sp, sp_off, bp, bp_off, ...)                                                  \
	do {                                                                                     \
		struct kernel_orc_frame f_[] = {                                                 \
			decoded(&format_6_1, WORD(6_1, sp_off, bp_off, sp, bp, OLD_CALL, 0)),    \
			decoded(&format_6_3, WORD(6_3, sp_off, bp_off, sp, bp, OLD_CALL, 1, 0)), \
			decoded(&new_format, WORD(6_12, sp_off, bp_off, sp, bp, CALL, 1)),       \
		};                                                                               \
		for (size_t i_ = 0; i_ < 3; i_++)                                                \
			check_call(&f_[i_], __VA_ARGS__);                                        \
	} while (0)

static void frames_of_calls(void **state)
{
	(void)state;
	/* Nothing is saved; the frame pointer is; a large frame. */
	CHECK_CALL(SP, 8, NONE, 0, KERNEL_ORC_FROM_SP, 8, 0);
	CHECK_CALL(SP, 48, PREV_SP, -16, KERNEL_ORC_FROM_SP, 48, -16);
	CHECK_CALL(SP, 4096, PREV_SP, -56, KERNEL_ORC_FROM_SP, 4096, -56);
	CHECK_CALL(BP, 16, PREV_SP, -16, KERNEL_ORC_FROM_FP, 16, -16);
	/* gcc's realigned stacks: the CFA is in memory, the frame pointer where itself points to */
	struct kernel_orc_frame f =
		decoded(&new_format, WORD(6_12, -8, 0, BP_INDIRECT, BP, CALL, 0));

	assert_int_equal(f.kind, KERNEL_ORC_CALL);
	assert_int_equal(f.cfa, KERNEL_ORC_AT_FP);
	assert_int_equal(f.offset, -8);
	assert_true(f.saved_at);
}

static void code_without_an_entry_has_a_frame_pointer(void **state)
{
	(void)state;
	check_call(&orc_without_entry, KERNEL_ORC_FROM_FP, 16, -16);
}

static void check_kind(const struct orc_format *f, uint64_t entry, int kind)
{
	assert_int_equal(decoded(f, entry).kind, kind);
}

static void ends_of_stacks(void **state)
{
	(void)state;
	check_kind(&new_format, WORD(6_12, .type = END), KERNEL_ORC_END);
	check_kind(&new_format, WORD(6_12, .type = UNDEFINED), KERNEL_ORC_OTHER);
	check_kind(&format_6_1, WORD(6_1, .end = 1), KERNEL_ORC_END);
	check_kind(&format_6_1, WORD(6_1, .end = 0), KERNEL_ORC_OTHER);
	check_kind(&format_6_3, WORD(6_3, .end = 1), KERNEL_ORC_END);
	/* That code was interrupted is no end. */
	check_kind(&format_6_3, WORD(6_3, .signal = 1), KERNEL_ORC_OTHER);
	check_kind(&new_format, WORD(6_12, .signal = 1), KERNEL_ORC_OTHER);
}

static void saved_registers(void **state)
{
	(void)state;
	check_kind(&new_format, WORD(6_12, .sp_reg = SP, .type = REGS, .signal = 1),
		   KERNEL_ORC_REGS);
	check_kind(&format_6_1, WORD(6_1, .sp_reg = SP, .type = OLD_REGS), KERNEL_ORC_REGS);
	check_kind(&format_6_3, WORD(6_3, .sp_reg = SP, .type = OLD_REGS, .signal = 1),
		   KERNEL_ORC_REGS);
	/* Not where the stack pointer points to; only some of them. */
	check_kind(&new_format, WORD(6_12, .sp_offset = 8, .sp_reg = SP, .type = REGS),
		   KERNEL_ORC_OTHER);
	check_kind(&new_format, WORD(6_12, .sp_reg = SP, .type = PARTIAL), KERNEL_ORC_OTHER);
	check_kind(&format_6_1, WORD(6_1, .sp_reg = SP, .type = OLD_PARTIAL), KERNEL_ORC_OTHER);
}

static void what_takes_more_is_no_frame(void **state)
{
	static const uint8_t others[] = {NONE, PREV_SP, DX, DI, R10, R13, SP_INDIRECT};

	(void)state;
	for (size_t i = 0; i < sizeof(others); i++) {
		check_kind(&new_format, WORD(6_12, 8, 0, others[i], NONE, CALL, 0),
			   KERNEL_ORC_OTHER);
		check_kind(&format_6_1, WORD(6_1, 8, 0, others[i], NONE, OLD_CALL, 0),
			   KERNEL_ORC_OTHER);
	}
	/* The caller's frame pointer in another register; beside where the frame pointer points */
	check_kind(&new_format, WORD(6_12, 8, 0, SP, DX, CALL, 0), KERNEL_ORC_OTHER);
	check_kind(&new_format, WORD(6_12, 8, 8, SP, BP, CALL, 0), KERNEL_ORC_OTHER);
}

struct member {
	const char *name;
	int bit, bits;
};

/* The kernel's types where its entries have @members behind the numbers. */
static struct btf *types(const struct member *members, size_t nr, uint32_t size)
{
	struct btf *btf = btf__new_empty();
	int number, bits;

	assert_non_null(btf);
	number = btf__add_int(btf, "short", 2, BTF_INT_SIGNED);
	bits = btf__add_int(btf, "unsigned int", 4, 0);
	assert_true(btf__add_struct(btf, "orc_entry", size) > 0);
	assert_int_equal(btf__add_field(btf, "sp_offset", number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "bp_offset", number, 16, 0), 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(btf__add_field(btf, members[i].name, bits,
						(uint32_t)members[i].bit,
						(uint32_t)members[i].bits),
				 0);
	return btf;
}

static int read_format(struct orc_format *f, const struct member *members, size_t nr, uint32_t size)
{
	struct btf *btf = types(members, nr, size);
	int err = orc_format_read(f, btf);

	btf__free(btf);
	return err;
}

#define FORMAT(f, size, ...)                                 \
	read_format(f, (const struct member[]){__VA_ARGS__}, \
		    sizeof((const struct member[]){__VA_ARGS__}) / sizeof(struct member), size)

static void types_tell_the_format(void **state)
{
	struct orc_format f;

	(void)state;
	assert_int_equal(FORMAT(&f, 6, {"type", 40, 2}, {"end", 42, 1}), 0);
	assert_memory_equal(&f, &format_6_1, sizeof(f));
	assert_int_equal(FORMAT(&f, 6, {"type", 40, 2}, {"signal", 42, 1}, {"end", 43, 1}), 0);
	assert_memory_equal(&f, &format_6_3, sizeof(f));
	assert_int_equal(FORMAT(&f, 6, {"type", 40, 3}, {"signal", 43, 1}), 0);
	assert_false(f.has_old_types);
}

static void other_formats_are_refused(void **state)
{
	struct btf *btf = btf__new_empty();
	struct orc_format f;

	(void)state;
	assert_true(orc_format_read(&f, btf) < 0);
	btf__free(btf);
	assert_true(FORMAT(&f, 8, {"type", 40, 3}) < 0);
	assert_true(FORMAT(&f, 6, {"type", 41, 3}) < 0);
	assert_true(FORMAT(&f, 6, {"type", 40, 4}) < 0);
	assert_true(FORMAT(&f, 6, {"type", 40, 2}) < 0);
	assert_true(FORMAT(&f, 6, {"end", 42, 1}) < 0);
}

static void members_are_found_by_name(void **state)
{
	const struct member members[] = {{"type", 40, 3}};
	struct btf *btf = types(members, 1, 6);
	uint32_t bit, bits;

	(void)state;
	assert_true(orc_find_member(btf, "orc_entry", "bp_offset", &bit, &bits));
	assert_int_equal(bit, 16);
	assert_int_equal(bits, 0);
	assert_true(orc_find_member(btf, "orc_entry", "type", &bit, &bits));
	assert_int_equal(bit, 40);
	assert_int_equal(bits, 3);
	assert_false(orc_find_member(btf, "orc_entry", "end", &bit, &bits));
	assert_false(orc_find_member(btf, "module", "type", &bit, &bits));
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_calls),
		cmocka_unit_test(code_without_an_entry_has_a_frame_pointer),
		cmocka_unit_test(ends_of_stacks),
		cmocka_unit_test(saved_registers),
		cmocka_unit_test(what_takes_more_is_no_frame),
		cmocka_unit_test(types_tell_the_format),
		cmocka_unit_test(other_formats_are_refused),
		cmocka_unit_test(members_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
