/* test_unwind_expr.c - DWARF expressions, operation by operation */
#include "tests/unit/unwind_expr_program.h"

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

static void the_cfa_is_not_there_while_it_is_computed(void **state)
{
	const uint64_t cfa = CFA;
	struct program p = {.nr = 0};
	uint64_t value;
	bool is_value;

	(void)state;
	op(&p, DW_OP_call_frame_cfa, 0);
	assert_int_equal(eval_with(&p, &cfa, &value, &is_value), DWUNW_FETCH_OK);
	assert_int_equal(value, CFA);
	assert_int_equal(eval(&p, &value, &is_value), DWUNW_FETCH_BAD);
}

static void a_register_rule_begins_with_the_cfa_on_the_stack(void **state)
{
	const uint64_t cfa = CFA;
	struct program p = {.nr = 0};
	uint64_t value;
	bool is_value;

	(void)state;
	assert_int_equal(eval_with(&p, &cfa, &value, &is_value), DWUNW_FETCH_OK);
	assert_int_equal(value, CFA);
	op(&p, DW_OP_lit8, 0);
	op(&p, DW_OP_minus, 0);
	assert_int_equal(eval_with(&p, &cfa, &value, &is_value), DWUNW_FETCH_OK);
	assert_int_equal(value, CFA - 8);
	assert_int_equal(eval(&p, &value, &is_value), DWUNW_FETCH_BAD);
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
		op(&p, DW_OP_bra, 1);
		op(&p, DW_OP_lit2, 0); /* jumped over */
		op(&p, DW_OP_lit3, 0);
		op(&p, DW_OP_skip, 1);
		op(&p, DW_OP_lit4, 0); /* jumped over */
		op(&p, DW_OP_plus, 0);
		assert_int_equal(value_of(&p), condition ? 4 : 5);
	}
}

static void a_branch_may_lead_to_the_end(void **state)
{
	struct program p = {.nr = 0};

	(void)state;
	op(&p, DW_OP_lit1, 0);
	op(&p, DW_OP_skip, 9);
	op(&p, DW_OP_const8u, 2); /* jumped over */
	assert_int_equal(value_of(&p), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_are_pushed),
		cmocka_unit_test(operators_compute_as_dwarf_says),
		cmocka_unit_test(plus_uconst_adds_its_operand),
		cmocka_unit_test(the_stack_is_rearranged),
		cmocka_unit_test(registers_are_read),
		cmocka_unit_test(memory_is_only_that_of_the_stack),
		cmocka_unit_test(the_cfa_is_not_there_while_it_is_computed),
		cmocka_unit_test(a_register_rule_begins_with_the_cfa_on_the_stack),
		cmocka_unit_test(a_branch_may_lead_to_the_end),
		cmocka_unit_test(stack_value_marks_the_value_itself),
		cmocka_unit_test(branches_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
