/* unwind_expr_program.h - for the tests of unwind/cfi/expr.h: put an expression together and run it
 */
#ifndef TESTS_UNWIND_EXPR_PROGRAM_H
#define TESTS_UNWIND_EXPR_PROGRAM_H

#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/cfi/expr.h"

#define STACK_ADDR 0x7000
#define BIAS	   0x10000
#define CFA	   0x7010

#define MAX_LEN 8192

/* An expression. */
struct program {
	uint8_t expr[MAX_LEN];
	size_t len;
	size_t nr; /* operations */
};

static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 0x88, 9, 10, 11, 12, 13, 14, 15, 16};
/* reg[r] = 1000 + 100 * r, but register 5 holds no value. */
static const uint64_t regs[DWUNW_MAX_ARCH_REGS] = {1000, 1100, 1200, 1300, 1400, 1500,
						   1600, 1700, 1800, 1900, 2000, 2100,
						   2200, 2300, 2400, 2500, 2600};

static inline void put_bytes(struct program *p, uint64_t number, size_t size)
{
	memcpy(p->expr + p->len, &number, size);
	p->len += size;
}

static inline void put_uleb(struct program *p, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		put_bytes(p, (number & 0x7f) | 0x80, 1);
	put_bytes(p, number, 1);
}

static inline void put_sleb(struct program *p, int64_t number)
{
	for (; number > 0x3f || number < -0x40; number >>= 7)
		put_bytes(p, ((uint64_t)number & 0x7f) | 0x80, 1);
	put_bytes(p, (uint64_t)number & 0x7f, 1);
}

/* Bytes of an operand of fixed size; 0: none. */
static inline size_t operand_size(uint8_t atom)
{
	static const uint8_t sizes[256] = {
		[DW_OP_const1u] = 1, [DW_OP_const1s] = 1, [DW_OP_pick] = 1, [DW_OP_deref_size] = 1,
		[DW_OP_const2u] = 2, [DW_OP_const2s] = 2, [DW_OP_skip] = 2, [DW_OP_bra] = 2,
		[DW_OP_const4u] = 4, [DW_OP_const4s] = 4, [DW_OP_addr] = 8, [DW_OP_const8u] = 8,
		[DW_OP_const8s] = 8,
	};

	return sizes[atom];
}

static inline void op2(struct program *p, uint8_t atom, uint64_t number, uint64_t number2)
{
	p->nr++;
	put_bytes(p, atom, 1);
	put_bytes(p, number, operand_size(atom));
	if (atom == DW_OP_constu || atom == DW_OP_plus_uconst || atom == DW_OP_regx ||
	    atom == DW_OP_bregx)
		put_uleb(p, number);
	if (atom == DW_OP_consts || (atom >= DW_OP_breg0 && atom <= DW_OP_breg31))
		put_sleb(p, (int64_t)number);
	if (atom == DW_OP_bregx)
		put_sleb(p, (int64_t)number2);
}

static inline void op(struct program *p, uint8_t atom, uint64_t number)
{
	op2(p, atom, number, 0);
}

/* Run @p with an empty stack, or, if @cfa is given, with that on it.  The expression is copied to
 * the end of a piece of memory, for ASan. */
static inline enum dwunw_fetch eval_with(const struct program *p, const uint64_t *cfa,
					 uint64_t *value, bool *is_value)
{
	struct dwunw_stack stack = {STACK_ADDR, bytes, sizeof(bytes)};
	struct dwunw_expr_env env = {.reg = regs,
				     .known = 0x1ffff & ~(1u << 5),
				     .stack = &stack,
				     .bias = BIAS,
				     .cfa = cfa};
	uint8_t *copy = malloc(p->len);
	enum dwunw_fetch fetch;

	assert_non_null(copy);
	memcpy(copy, p->expr, p->len);
	fetch = dwunw_expr_eval(&env, copy, p->len, value, is_value);
	free(copy);
	return fetch;
}

static inline enum dwunw_fetch eval(const struct program *p, uint64_t *value, bool *is_value)
{
	return eval_with(p, NULL, value, is_value);
}

static inline uint64_t value_of(const struct program *p)
{
	uint64_t value = 0;
	bool is_value;

	assert_int_equal(eval(p, &value, &is_value), DWUNW_FETCH_OK);
	return value;
}

static inline enum dwunw_fetch failure_of(const struct program *p)
{
	uint64_t value = 99;
	bool is_value;
	enum dwunw_fetch err = eval(p, &value, &is_value);

	assert_int_equal(value, 99);
	return err;
}

#endif
