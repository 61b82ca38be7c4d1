/* test_unwind_cfi_shapes.c - rows of the less usual kinds, as the assembler writes them
 *
 * The call frame information is that of this program; what a row must say is in the directives.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/cfi/cfi.h"
#include "unwind/walk/step.h"

#define RBX 3
#define RBP 6
#define R12 12

__asm__(".text\n"
	"shape_plt:\n\t.cfi_startproc\n"
	"\t.cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22\n"
	"\tnop\n\tnop\n\t.cfi_endproc\n"
	/* As gcc aligns a stack: CFA = *(rbp - 8), rbp itself at *rbp, rbx at rbp - 16. */
	"shape_drap:\n\t.cfi_startproc\n"
	"\t.cfi_escape 0x10,6,2,0x76,0\n\t.cfi_escape 0x0f,3,0x76,0x78,6\n"
	"\t.cfi_escape 0x10,3,2,0x76,0x70\n\tnop\n\tnop\n\t.cfi_endproc\n"
	"shape_signal:\n\t.cfi_startproc\n\t.cfi_signal_frame\n\tnop\n\tnop\n\t.cfi_endproc\n"
	/* As _dl_runtime_resolve. */
	"shape_rbx:\n\t.cfi_startproc\n\t.cfi_def_cfa %rbx, 16\n\t.cfi_offset %rbx, -16\n"
	"\tnop\n\tnop\n\t.cfi_endproc\n"
	/* As vfork: the return address waits in a register. */
	"shape_register:\n\t.cfi_startproc\n\t.cfi_register %rip, %rdi\n\tnop\n\t.cfi_endproc\n"
	"shape_undefined:\n\t.cfi_startproc\n\t.cfi_undefined %r12\n\tnop\n\t.cfi_endproc\n"
	"shape_outermost:\n\t.cfi_startproc\n\t.cfi_undefined %rip\n\tnop\n\t.cfi_endproc\n"
	/* What is remembered includes the CFA; what is restored is as the CIE has it. */
	"shape_remember:\n\t.cfi_startproc\n\tnop\n\t.cfi_def_cfa_offset 32\n\t.cfi_offset %rbp, "
	"-16\n"
	"\t.cfi_remember_state\n\tnop\n\t.cfi_def_cfa %rbp, 48\n\t.cfi_restore %rbp\n"
	"\t.cfi_offset %rbx, -24\n\tnop\n\t.cfi_restore_state\n\tnop\n\tnop\n\t.cfi_endproc\n"
	/* An offset that is said before an expression holds for a register after it. */
	"shape_kept:\n\t.cfi_startproc\n\t.cfi_def_cfa_offset 56\n\tnop\n"
	"\t.cfi_escape 0x0f,5,0x77,8,6,0x23,56\n\tnop\n\t.cfi_def_cfa_register %rsp\n\tnop\n"
	"\t.cfi_endproc\n"
	/* Offsets that a row cannot hold, and instructions that say nothing for an unwinder. */
	"shape_far:\n\t.cfi_startproc\n\t.cfi_escape 0x0c,7,0x80,0x80,0x80,0x80,0x40\n\tnop\n"
	"\t.cfi_endproc\n"
	"shape_args:\n\t.cfi_startproc\n\t.cfi_def_cfa_offset 24\n\t.cfi_escape 0x2e,16\n\tnop\n"
	"\t.cfi_escape 0x2f,3,2\n\tnop\n\t.cfi_endproc\n");

extern char shape_plt[], shape_drap[], shape_signal[], shape_rbx[], shape_register[],
	shape_undefined[], shape_outermost[], shape_remember[], shape_kept[], shape_far[],
	shape_args[];

extern char __executable_start[]; /* of the linker: where address 0 of this file is */

static struct dwunw_cfi *cfi;
static Elf *elf;
static int fd;

static int open_this_program(void **state)
{
	(void)state;
	elf_version(EV_CURRENT);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = elf ? dwunw_cfi_new(elf) : NULL;
	return cfi ? 0 : -1;
}

static int close_this_program(void **state)
{
	(void)state;
	dwunw_cfi_free(cfi);
	elf_end(elf);
	return close(fd);
}

static struct dwunw_cfi_row row_at(const char *code)
{
	const struct dwunw_cfi_row *row;

	assert_int_equal(dwunw_cfi_find(cfi, (uint64_t)(code - __executable_start), &row), 0);
	return *row;
}

static void a_plt_entry_is_told_by_its_number(void **state)
{
	struct dwunw_cfi_row row = row_at(shape_plt);

	(void)state;
	assert_int_equal(row.kind, DWUNW_CFI_FULL);
	assert_int_equal(row.cfa_shape, DWUNW_CFA_PLT);
	assert_true(row.whole);
	assert_int_equal(row.cfa_reg, DWUNW_CFI_RSP);
	assert_int_equal(row.cfa_off, 8);
	assert_int_equal(row.plt_n, 11);
	assert_int_equal(row.ra_off, -8);
}

static void an_aligned_stack_is_a_deref(void **state)
{
	struct dwunw_cfi_row row = row_at(shape_drap);

	(void)state;
	assert_int_equal(row.kind, DWUNW_CFI_FULL);
	assert_int_equal(row.cfa_shape, DWUNW_CFA_DEREF);
	assert_true(row.whole);
	assert_int_equal(row.cfa_reg, RBP);
	assert_int_equal(row.cfa_off, -8);
	assert_int_equal(row.nr_saved, 2);
	assert_int_equal(row.by_reg, 3);
	assert_int_equal(row.reg[0], RBX);
	assert_int_equal(row.off[0], -16);
	assert_int_equal(row.reg[1], RBP);
	assert_int_equal(row.off[1], 0);
}

static void a_signal_frame_is_marked(void **state)
{
	(void)state;
	assert_true(row_at(shape_signal).signal);
	assert_int_equal(row_at(shape_signal).kind, DWUNW_CFI_SIMPLE);
	assert_false(row_at(shape_rbx).signal);
}

static void any_register_may_hold_the_cfa(void **state)
{
	struct dwunw_cfi_row row = row_at(shape_rbx);

	(void)state;
	assert_int_equal(row.kind, DWUNW_CFI_SIMPLE);
	assert_int_equal(row.cfa_reg, RBX);
	assert_int_equal(row.cfa_off, 16);
	assert_int_equal(row.nr_saved, 1);
	assert_int_equal(row.reg[0], RBX);
	assert_int_equal(row.off[0], -16);
}

static void undefined_registers_are_told(void **state)
{
	(void)state;
	assert_int_equal(row_at(shape_undefined).kind, DWUNW_CFI_SIMPLE);
	assert_int_equal(row_at(shape_undefined).undefined, 1u << R12);
	assert_int_equal(row_at(shape_outermost).kind, DWUNW_CFI_OUTERMOST);
}

static void remembering_includes_the_cfa(void **state)
{
	struct dwunw_cfi_row row = row_at(shape_remember + 2);

	(void)state;
	assert_int_equal(row.cfa_reg, RBP);
	assert_int_equal(row.cfa_off, 48);
	assert_int_equal(row.nr_saved, 1);
	assert_int_equal(row.reg[0], RBX);
	row = row_at(shape_remember + 3);
	assert_int_equal(row.cfa_reg, DWUNW_CFI_RSP);
	assert_int_equal(row.cfa_off, 32);
	assert_int_equal(row.nr_saved, 1);
	assert_int_equal(row.reg[0], RBP);
}

static void an_expression_leaves_the_offset_alone(void **state)
{
	(void)state;
	assert_int_equal(row_at(shape_kept + 1).cfa_shape, DWUNW_CFA_OTHER);
	assert_false(row_at(shape_kept + 1).whole);
	assert_int_equal(row_at(shape_kept + 2).kind, DWUNW_CFI_SIMPLE);
	assert_int_equal(row_at(shape_kept + 2).cfa_off, 56);
}

static void what_does_not_fit_is_full(void **state)
{
	struct dwunw_cfi_row row = row_at(shape_far);

	(void)state;
	assert_int_equal(row.kind, DWUNW_CFI_FULL);
	assert_int_equal(row.cfa_shape, DWUNW_CFA_OTHER);
	assert_int_equal(row.full->cfa.off, 1ull << 34);
}

static void gnu_instructions_are_known(void **state)
{
	struct dwunw_cfi_row row = row_at(shape_args + 1);

	(void)state;
	assert_int_equal(row_at(shape_args).cfa_off, 24);
	assert_int_equal(row.nr_saved, 1);
	assert_int_equal(row.reg[0], RBX);
	assert_int_equal(row.off[0], 16); /* -(2 * -8) */
}

/* Step from @code with the stack @words at 0x7000, rsp there, and every other register 0x7000 plus
 * eight times its number. */
static struct dwunw_walk step_from(const char *code, const uint64_t *words, size_t len)
{
	const struct dwunw_stack stack = {0x7000, (const uint8_t *)words, len};
	struct dwunw_walk w = {.stack = &stack, .known = 0x1ffff, .cfa = 0x7000};
	struct dwunw_cfi_row row = row_at(code);

	for (uint64_t i = 0; i < DWUNW_MAX_ARCH_REGS; i++)
		w.reg[i] = 0x7000 + 8 * i;
	w.reg[DWUNW_X86_64_RSP] = 0x7000;
	assert_int_equal(dwunw_step(&w, &row), DWUNW_STEPPED);
	return w;
}

static void each_kind_is_stepped_over(void **state)
{
	/* words[5] is at rbp - 8, words[6] at rbp, words[4] at rbp - 16. */
	const uint64_t words[] = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0x7050, 0xa6, 0xa7, 0xa8, 0xa9};
	struct dwunw_walk w = step_from(shape_drap, words, sizeof(words));

	(void)state;
	assert_int_equal(w.reg[DWUNW_X86_64_RSP], 0x7050);
	assert_int_equal(w.reg[DWUNW_X86_64_RIP], 0xa9);
	assert_int_equal(w.reg[RBP], 0xa6);
	assert_int_equal(w.reg[RBX], 0xa4);
	w = step_from(shape_plt, words, sizeof(words)); /* rip & 15 is 0 */
	assert_int_equal(w.reg[DWUNW_X86_64_RSP], 0x7008);
	assert_int_equal(w.reg[DWUNW_X86_64_RIP], 0xa0);
	w = step_from(shape_register, words, sizeof(words));
	assert_int_equal(w.reg[DWUNW_X86_64_RIP], 0x7000 + 8 * 5);
	w = step_from(shape_rbx, words, sizeof(words));
	assert_int_equal(w.reg[DWUNW_X86_64_RSP], 0x7000 + 8 * RBX + 16);
	assert_int_equal(w.reg[RBX], 0xa3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plt_entry_is_told_by_its_number),
		cmocka_unit_test(an_aligned_stack_is_a_deref),
		cmocka_unit_test(a_signal_frame_is_marked),
		cmocka_unit_test(any_register_may_hold_the_cfa),
		cmocka_unit_test(undefined_registers_are_told),
		cmocka_unit_test(remembering_includes_the_cfa),
		cmocka_unit_test(an_expression_leaves_the_offset_alone),
		cmocka_unit_test(what_does_not_fit_is_full),
		cmocka_unit_test(gnu_instructions_are_known),
		cmocka_unit_test(each_kind_is_stepped_over),
	};

	return cmocka_run_group_tests(tests, open_this_program, close_this_program);
}
