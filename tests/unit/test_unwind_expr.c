/* test_unwind_expr.c - DWARF expressions, operation by operation */
#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/expr.h"

#define STACK_ADDR 0x7000
#define BIAS	   0x10000
#define CFA	   0x7010

#define MAX_OPS 1200

/* An expression with the byte offsets that branches count by. */
struct program {
	Dwarf_Op ops[MAX_OPS];
	size_t nr;
	uint64_t at;
};

static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 0x88, 9, 10, 11, 12, 13, 14, 15, 16};
static uint64_t regs[DWUNW_MAX_ARCH_REGS];

static void op2(struct program *p, uint8_t atom, uint64_t number, uint64_t number2)
{
	p->ops[p->nr++] = (Dwarf_Op){atom, number, number2, p->at};
	/* Only a branch must have its true length, of three bytes. */
	p->at += 3;
}

static void op(struct program *p, uint8_t atom, uint64_t number)
{
	op2(p, atom, number, 0);
}

static enum dwunw_fetch eval(const struct program *p, uint64_t *value, bool *is_value)
{
	static const uint64_t cfa = CFA;
	struct dwunw_stack stack = {STACK_ADDR, bytes, sizeof(bytes)};
	struct dwunw_expr_env env = {.reg = regs,
				     .known = 0x1ffff & ~(1u << 5),
				     .stack = &stack,
				     .bias = BIAS,
				     .cfa = &cfa};

	return dwunw_expr_eval(&env, p->ops, p->nr, value, is_value);
}

static uint64_t value_of(const struct program *p)
{
	uint64_t value = 0;
	bool is_value;

	assert_int_equal(eval(p, &value, &is_value), DWUNW_FETCH_OK);
	return value;
}

static enum dwunw_fetch failure_of(const struct program *p)
{
	uint64_t value = 99;
	bool is_value;
	enum dwunw_fetch err = eval(p, &value, &is_value);

	assert_int_equal(value, 99);
	return err;
}

/* The result of a single operation after up to three constants. */
static uint64_t apply(uint8_t atom, size_t nr, uint64_t a, uint64_t b)
{
	struct program p = {.nr = 0};

	op(&p, DW_OP_const8u, a);
	if (nr > 1)
		op(&p, DW_OP_const8u, b);
	op(&p, atom, 0);
	return value_of(&p);
}

static void constants_are_pushed(void **state)
{
	static const struct {
		uint8_t atom;
		uint64_t number, value;
	} cases[] = {
		{DW_OP_lit0, 0, 0},
		{DW_OP_lit31, 0, 31},
		{DW_OP_addr, 0x1234, 0x1234 + BIAS},
		{DW_OP_const1u, 0xff, 0xff},
		{DW_OP_const1s, 0xff, UINT64_MAX},
		{DW_OP_const2u, 0xffff, 0xffff},
		{DW_OP_const2s, 0x8000, (uint64_t)INT16_MIN},
		{DW_OP_const4u, 0xffffffff, 0xffffffff},
		{DW_OP_const4s, 0x80000000, (uint64_t)INT32_MIN},
		{DW_OP_const8u, UINT64_MAX, UINT64_MAX},
		{DW_OP_const8s, (uint64_t)-5, (uint64_t)-5},
		{DW_OP_constu, 1u << 31, 1u << 31},
		{DW_OP_consts, (uint64_t)-7, (uint64_t)-7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program p = {.nr = 0};

		op(&p, cases[i].atom, cases[i].number);
		assert_int_equal(value_of(&p), cases[i].value);
	}
}

static void operators_compute_as_dwarf_says(void **state)
{
	const uint64_t min = (uint64_t)INT64_MIN, minus1 = UINT64_MAX;
	const struct {
		uint8_t atom;
		size_t nr;
		uint64_t a, b, value;
	} cases[] = {
		{DW_OP_abs, 1, (uint64_t)-3, 0, 3},
		{DW_OP_abs, 1, 3, 0, 3},
		{DW_OP_abs, 1, min, 0, min},
		{DW_OP_neg, 1, 3, 0, (uint64_t)-3},
		{DW_OP_neg, 1, min, 0, min},
		{DW_OP_not, 1, 0xf0, 0, ~0xf0ull},
		{DW_OP_and, 2, 0xc, 0xa, 0x8},
		{DW_OP_or, 2, 0xc, 0xa, 0xe},
		{DW_OP_xor, 2, 0xc, 0xa, 0x6},
		{DW_OP_plus, 2, minus1, 2, 1},
		{DW_OP_minus, 2, 1, 2, minus1},
		{DW_OP_mul, 2, minus1, 3, (uint64_t)-3},
		{DW_OP_div, 2, (uint64_t)-7, 2, (uint64_t)-3},
		{DW_OP_div, 2, 7, (uint64_t)-2, (uint64_t)-3},
		{DW_OP_div, 2, min, minus1, min},
		{DW_OP_mod, 2, 7, 4, 3},
		{DW_OP_mod, 2, minus1, 10, 5},
		{DW_OP_shl, 2, 1, 63, min},
		{DW_OP_shl, 2, 1, 64, 0},
		{DW_OP_shl, 2, 1, minus1, 0},
		{DW_OP_shr, 2, min, 63, 1},
		{DW_OP_shr, 2, min, 64, 0},
		{DW_OP_shra, 2, (uint64_t)-8, 1, (uint64_t)-4},
		{DW_OP_shra, 2, (uint64_t)-8, 0, (uint64_t)-8},
		{DW_OP_shra, 2, (uint64_t)-8, 64, minus1},
		{DW_OP_shra, 2, 8, 64, 0},
		{DW_OP_shra, 2, 8, 2, 2},
		{DW_OP_eq, 2, 4, 4, 1},
		{DW_OP_eq, 2, 4, 5, 0},
		{DW_OP_ne, 2, 4, 5, 1},
		{DW_OP_ge, 2, 4, 4, 1},
		{DW_OP_ge, 2, minus1, 0, 0},
		{DW_OP_gt, 2, 4, 4, 0},
		{DW_OP_gt, 2, 0, minus1, 1},
		{DW_OP_le, 2, 4, 4, 1},
		{DW_OP_le, 2, minus1, 0, 1},
		{DW_OP_lt, 2, minus1, 0, 1},
		{DW_OP_lt, 2, 4, 4, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(apply(cases[i].atom, cases[i].nr, cases[i].a, cases[i].b),
				 cases[i].value);
}

static void plus_uconst_adds_its_operand(void **state)
{
	struct program p = {.nr = 0};

	(void)state;
	op(&p, DW_OP_lit5, 0);
	op(&p, DW_OP_plus_uconst, 100);
	assert_int_equal(value_of(&p), 105);
}

/* The stack 1 2 3 (top), then @atom, then its elements from the top as decimal digits. */
static uint64_t rearranged(uint8_t atom, uint64_t number, size_t nr_left)
{
	uint64_t digits = 0;

	for (size_t i = 0; i < nr_left; i++) {
		struct program p = {.nr = 0};

		op(&p, DW_OP_lit1, 0);
		op(&p, DW_OP_lit2, 0);
		op(&p, DW_OP_lit3, 0);
		op(&p, atom, number);
		for (size_t j = 0; j < i; j++)
			op(&p, DW_OP_drop, 0);
		digits = digits * 10 + value_of(&p);
	}
	return digits;
}

static void the_stack_is_rearranged(void **state)
{
	(void)state;
	assert_int_equal(rearranged(DW_OP_nop, 0, 3), 321);
	assert_int_equal(rearranged(DW_OP_dup, 0, 4), 3321);
	assert_int_equal(rearranged(DW_OP_drop, 0, 2), 21);
	assert_int_equal(rearranged(DW_OP_over, 0, 4), 2321);
	assert_int_equal(rearranged(DW_OP_pick, 0, 4), 3321);
	assert_int_equal(rearranged(DW_OP_pick, 2, 4), 1321);
	assert_int_equal(rearranged(DW_OP_swap, 0, 3), 231);
	assert_int_equal(rearranged(DW_OP_rot, 0, 3), 213);
}

static void registers_are_read(void **state)
{
	uint64_t value;
	bool is_value;

	(void)state;
	for (unsigned int r = 0; r < DWUNW_MAX_ARCH_REGS; r++) {
		struct program reg = {.nr = 0}, breg = {.nr = 0}, regx = {.nr = 0},
			       bregx = {.nr = 0};

		op(&reg, (uint8_t)(DW_OP_reg0 + r), 0);
		op(&breg, (uint8_t)(DW_OP_breg0 + r), (uint64_t)-8);
		op(&regx, DW_OP_regx, r);
		op2(&bregx, DW_OP_bregx, r, 16);
		if (r == 5) { /* the one that holds no value */
			assert_int_equal(failure_of(&reg), DWUNW_FETCH_UNKNOWN);
			assert_int_equal(failure_of(&breg), DWUNW_FETCH_UNKNOWN);
			assert_int_equal(failure_of(&regx), DWUNW_FETCH_UNKNOWN);
			assert_int_equal(failure_of(&bregx), DWUNW_FETCH_UNKNOWN);
			continue;
		}
		assert_int_equal(eval(&reg, &value, &is_value), DWUNW_FETCH_OK);
		assert_int_equal(value, regs[r]);
		assert_true(is_value);
		assert_int_equal(eval(&breg, &value, &is_value), DWUNW_FETCH_OK);
		assert_int_equal(value, regs[r] - 8);
		assert_false(is_value);
		assert_int_equal(value_of(&regx), regs[r]);
		assert_int_equal(value_of(&bregx), regs[r] + 16);
	}
}

static void registers_of_other_machines_are_refused(void **state)
{
	struct program p = {.nr = 0}, q = {.nr = 0};

	(void)state;
	op(&p, DW_OP_breg17, 0);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	op(&q, DW_OP_regx, UINT64_MAX);
	assert_int_equal(failure_of(&q), DWUNW_FETCH_BAD);
}

static void memory_is_only_that_of_the_stack(void **state)
{
	(void)state;
	for (uint64_t size = 1; size <= 8; size++) {
		uint64_t expect = 0;

		memcpy(&expect, bytes + 3, size);
		for (uint64_t addr = STACK_ADDR - 10; addr < STACK_ADDR + 20; addr++) {
			struct program p = {.nr = 0};

			op(&p, DW_OP_const8u, addr);
			op(&p, DW_OP_deref_size, size);
			if (addr < STACK_ADDR)
				assert_int_equal(failure_of(&p), DWUNW_FETCH_BELOW);
			else if (addr + size > STACK_ADDR + sizeof(bytes))
				assert_int_equal(failure_of(&p), DWUNW_FETCH_ABOVE);
			else if (addr == STACK_ADDR + 3)
				assert_int_equal(value_of(&p), expect);
			else
				value_of(&p);
		}
	}
	assert_int_equal(apply(DW_OP_deref, 1, STACK_ADDR, 0), 0x8807060504030201);
}

static void memory_at_the_ends_of_the_address_space(void **state)
{
	struct program p = {.nr = 0}, q = {.nr = 0}, r = {.nr = 0};

	(void)state;
	op(&p, DW_OP_const8u, UINT64_MAX);
	op(&p, DW_OP_deref, 0);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_ABOVE);
	op(&q, DW_OP_const8u, STACK_ADDR);
	op(&q, DW_OP_deref_size, 9);
	assert_int_equal(failure_of(&q), DWUNW_FETCH_BAD);
	op(&r, DW_OP_const8u, STACK_ADDR);
	op(&r, DW_OP_deref_size, 0);
	assert_int_equal(failure_of(&r), DWUNW_FETCH_BAD);
}

static void the_cfa_is_not_there_while_it_is_computed(void **state)
{
	struct program p = {.nr = 0};
	struct dwunw_stack stack = {STACK_ADDR, bytes, sizeof(bytes)};
	struct dwunw_expr_env env = {.reg = regs, .stack = &stack};
	uint64_t value;
	bool is_value;

	(void)state;
	op(&p, DW_OP_call_frame_cfa, 0);
	assert_int_equal(value_of(&p), CFA);
	assert_int_equal(dwunw_expr_eval(&env, p.ops, p.nr, &value, &is_value), DWUNW_FETCH_BAD);
}

static void stack_value_marks_the_value_itself(void **state)
{
	struct program p = {.nr = 0};
	uint64_t value;
	bool is_value;

	(void)state;
	op(&p, DW_OP_lit7, 0);
	assert_int_equal(eval(&p, &value, &is_value), DWUNW_FETCH_OK);
	assert_false(is_value);
	op(&p, DW_OP_stack_value, 0);
	assert_int_equal(eval(&p, &value, &is_value), DWUNW_FETCH_OK);
	assert_int_equal(value, 7);
	assert_true(is_value);
}

static void branches_are_taken(void **state)
{
	(void)state;
	for (uint64_t condition = 0; condition < 2; condition++) {
		struct program p = {.nr = 0};

		op(&p, DW_OP_lit1, 0);
		op(&p, DW_OP_const8u, condition);
		op(&p, DW_OP_bra, 3);
		op(&p, DW_OP_lit2, 0); /* jumped over */
		op(&p, DW_OP_lit3, 0);
		op(&p, DW_OP_skip, 3);
		op(&p, DW_OP_lit4, 0); /* jumped over */
		op(&p, DW_OP_plus, 0);
		assert_int_equal(value_of(&p), condition ? 4 : 5);
	}
}

static void branches_to_nowhere_are_refused(void **state)
{
	static const uint64_t to[] = {1, 2, 4, 30000, (uint64_t)-1, (uint64_t)-100, 0x8000};

	(void)state;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		struct program p = {.nr = 0};

		op(&p, DW_OP_lit1, 0);
		op(&p, DW_OP_skip, to[i]);
		op(&p, DW_OP_lit1, 0);
		assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	}
}

static void an_endless_loop_ends(void **state)
{
	struct program p = {.nr = 0}, q = {.nr = 0};

	(void)state;
	op(&p, DW_OP_lit1, 0);
	op(&p, DW_OP_skip, (uint64_t)-3);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	/* 300 rounds of three steps are fewer than 1000, 400 are more. */
	op(&q, DW_OP_const8u, 300);
	op(&q, DW_OP_plus_uconst, (uint64_t)-1);
	op(&q, DW_OP_dup, 0);
	op(&q, DW_OP_bra, (uint64_t)-9);
	assert_int_equal(value_of(&q), 0);
	q.ops[0].number = 400;
	assert_int_equal(failure_of(&q), DWUNW_FETCH_BAD);
}

static void a_long_expression_is_refused(void **state)
{
	struct program p = {.nr = 0};

	(void)state;
	op(&p, DW_OP_lit1, 0);
	while (p.nr < DWUNW_EXPR_MAX_STEPS)
		op(&p, DW_OP_nop, 0);
	assert_int_equal(value_of(&p), 1);
	op(&p, DW_OP_nop, 0);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
}

static void the_stack_has_a_limit(void **state)
{
	struct program p = {.nr = 0};

	(void)state;
	while (p.nr < DWUNW_EXPR_MAX_DEPTH)
		op(&p, DW_OP_lit1, 0);
	assert_int_equal(value_of(&p), 1);
	op(&p, DW_OP_lit1, 0);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
}

static void too_few_operands_are_refused(void **state)
{
	static const struct {
		uint8_t atom;
		size_t nr;
	} cases[] = {
		{DW_OP_dup, 1},	 {DW_OP_drop, 1},  {DW_OP_over, 2},	   {DW_OP_pick, 1},
		{DW_OP_swap, 2}, {DW_OP_rot, 3},   {DW_OP_deref, 1},	   {DW_OP_deref_size, 1},
		{DW_OP_abs, 1},	 {DW_OP_neg, 1},   {DW_OP_not, 1},	   {DW_OP_plus_uconst, 1},
		{DW_OP_and, 2},	 {DW_OP_div, 2},   {DW_OP_minus, 2},	   {DW_OP_mod, 2},
		{DW_OP_mul, 2},	 {DW_OP_or, 2},	   {DW_OP_plus, 2},	   {DW_OP_shl, 2},
		{DW_OP_shr, 2},	 {DW_OP_shra, 2},  {DW_OP_xor, 2},	   {DW_OP_eq, 2},
		{DW_OP_ne, 2},	 {DW_OP_ge, 2},	   {DW_OP_gt, 2},	   {DW_OP_le, 2},
		{DW_OP_lt, 2},	 {DW_OP_bra, 1},   {DW_OP_stack_value, 1}, {DW_OP_nop, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program p = {.nr = 0};

		for (size_t j = 1; j < cases[i].nr; j++)
			op(&p, DW_OP_lit1, 0);
		op(&p, cases[i].atom, 0);
		assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	}
}

static void division_by_zero_is_refused(void **state)
{
	static const uint8_t atoms[] = {DW_OP_div, DW_OP_mod};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct program p = {.nr = 0};

		op(&p, DW_OP_lit5, 0);
		op(&p, DW_OP_lit0, 0);
		op(&p, atoms[i], 0);
		assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	}
}

/* Any operation with any operands: an answer or a refusal, which ASan and UBSan agree with. */
static void nonsense_is_survived(void **state)
{
	(void)state;
	for (unsigned int atom = 0; atom < 256; atom++) {
		for (unsigned int depth = 0; depth < 5; depth++) {
			struct program p = {.nr = 0};
			uint64_t value;
			bool is_value;

			for (unsigned int i = 0; i < depth; i++)
				op(&p, DW_OP_const8u, 0x8000000000000000 >> (i * 21 % 64));
			op2(&p, (uint8_t)atom, UINT64_MAX - depth, UINT64_MAX);
			op2(&p, (uint8_t)atom, depth, depth);
			eval(&p, &value, &is_value);
		}
	}
}

static void an_empty_expression_is_refused(void **state)
{
	struct program p = {.nr = 0};

	(void)state;
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	op(&p, DW_OP_xderef, 0);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
}

static int setup(void **state)
{
	(void)state;
	for (unsigned int r = 0; r < DWUNW_MAX_ARCH_REGS; r++)
		regs[r] = 1000 + 100 * r;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_are_pushed),
		cmocka_unit_test(operators_compute_as_dwarf_says),
		cmocka_unit_test(plus_uconst_adds_its_operand),
		cmocka_unit_test(the_stack_is_rearranged),
		cmocka_unit_test(registers_are_read),
		cmocka_unit_test(registers_of_other_machines_are_refused),
		cmocka_unit_test(memory_is_only_that_of_the_stack),
		cmocka_unit_test(memory_at_the_ends_of_the_address_space),
		cmocka_unit_test(the_cfa_is_not_there_while_it_is_computed),
		cmocka_unit_test(stack_value_marks_the_value_itself),
		cmocka_unit_test(branches_are_taken),
		cmocka_unit_test(branches_to_nowhere_are_refused),
		cmocka_unit_test(an_endless_loop_ends),
		cmocka_unit_test(a_long_expression_is_refused),
		cmocka_unit_test(the_stack_has_a_limit),
		cmocka_unit_test(too_few_operands_are_refused),
		cmocka_unit_test(division_by_zero_is_refused),
		cmocka_unit_test(nonsense_is_survived),
		cmocka_unit_test(an_empty_expression_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
