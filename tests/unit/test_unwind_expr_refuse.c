/* test_unwind_expr_refuse.c - DWARF expressions that make no sense, or too much of it */
#include "tests/unit/unwind_expr_program.h"

static void registers_of_other_machines_are_refused(void **state)
{
	struct program p = {.nr = 0}, q = {.nr = 0};

	(void)state;
	op(&p, DW_OP_breg17, 0);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	op(&q, DW_OP_regx, UINT64_MAX);
	assert_int_equal(failure_of(&q), DWUNW_FETCH_BAD);
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

static void branches_to_nowhere_are_refused(void **state)
{
	/* Into the constant, behind the end, into the branch itself, and before the beginning. */
	static const uint64_t to[] = {
		1,     2, 8, 10, 30000, (uint64_t)-1, (uint64_t)-2, (uint64_t)-5, (uint64_t)-100,
		0x8000};

	(void)state;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		struct program p = {.nr = 0};

		op(&p, DW_OP_lit1, 0);
		op(&p, DW_OP_skip, to[i]);
		op(&p, DW_OP_const8u, 0x9696969696969696); /* DW_OP_nop, if it is executed */
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
	op(&q, DW_OP_bra, (uint64_t)-15);
	assert_int_equal(value_of(&q), 0);
	memcpy(q.expr + 1, &(uint16_t){400}, 2);
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

static void a_long_operand_is_refused(void **state)
{
	struct program p = {.nr = 0};

	(void)state;
	op(&p, DW_OP_plus_uconst, 5);
	p.expr[0] = DW_OP_constu;
	assert_int_equal(value_of(&p), 5);
	/* Padded by seven bits a byte: with three it is still five, with a hundred it is nonsense.
	 */
	p.expr[1] = 0x85;
	p.len = 1;
	put_bytes(&p, 0x80808085, 4);
	put_bytes(&p, 0, 1);
	assert_int_equal(value_of(&p), 5);
	memset(p.expr + 2, 0x80, 100);
	p.len = 102;
	put_bytes(&p, 0, 1);
	assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
}

static void an_operand_cut_short_is_refused(void **state)
{
	static const uint8_t atoms[] = {
		DW_OP_addr,	  DW_OP_const1u, DW_OP_const2s, DW_OP_const4u, DW_OP_const8s,
		DW_OP_constu,	  DW_OP_consts,	 DW_OP_breg0,	DW_OP_bregx,   DW_OP_pick,
		DW_OP_deref_size, DW_OP_skip,	 DW_OP_bra,	DW_OP_regx,    DW_OP_plus_uconst};

	(void)state;
	for (size_t i = 0; i < sizeof(atoms); i++) {
		struct program p = {.nr = 0};

		op(&p, DW_OP_lit1, 0);
		op2(&p, atoms[i], 0, 0);
		for (p.len--; p.len > 1; p.len--)
			assert_int_equal(failure_of(&p), DWUNW_FETCH_BAD);
	}
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
		{DW_OP_dup, 1},	 {DW_OP_drop, 1}, {DW_OP_over, 2},	  {DW_OP_pick, 1},
		{DW_OP_swap, 2}, {DW_OP_rot, 3},  {DW_OP_deref, 1},	  {DW_OP_deref_size, 1},
		{DW_OP_abs, 1},	 {DW_OP_neg, 1},  {DW_OP_not, 1},	  {DW_OP_plus_uconst, 1},
		{DW_OP_and, 2},	 {DW_OP_div, 2},  {DW_OP_minus, 2},	  {DW_OP_mod, 2},
		{DW_OP_mul, 2},	 {DW_OP_or, 2},	  {DW_OP_plus, 2},	  {DW_OP_shl, 2},
		{DW_OP_shr, 2},	 {DW_OP_shra, 2}, {DW_OP_xor, 2},	  {DW_OP_eq, 2},
		{DW_OP_ne, 2},	 {DW_OP_ge, 2},	  {DW_OP_gt, 2},	  {DW_OP_le, 2},
		{DW_OP_lt, 2},	 {DW_OP_bra, 1},  {DW_OP_stack_value, 1}, {DW_OP_nop, 1},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_of_other_machines_are_refused),
		cmocka_unit_test(memory_at_the_ends_of_the_address_space),
		cmocka_unit_test(branches_to_nowhere_are_refused),
		cmocka_unit_test(an_endless_loop_ends),
		cmocka_unit_test(a_long_expression_is_refused),
		cmocka_unit_test(a_long_operand_is_refused),
		cmocka_unit_test(an_operand_cut_short_is_refused),
		cmocka_unit_test(the_stack_has_a_limit),
		cmocka_unit_test(too_few_operands_are_refused),
		cmocka_unit_test(division_by_zero_is_refused),
		cmocka_unit_test(nonsense_is_survived),
		cmocka_unit_test(an_empty_expression_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
