/* unwind_expr_program.h - for the tests of unwind/expr.h: put an expression together and run it */
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
/* reg[r] = 1000 + 100 * r, but register 5 holds no value. */
static const uint64_t regs[DWUNW_MAX_ARCH_REGS] = {1000, 1100, 1200, 1300, 1400, 1500,
						   1600, 1700, 1800, 1900, 2000, 2100,
						   2200, 2300, 2400, 2500, 2600};

static inline void op2(struct program *p, uint8_t atom, uint64_t number, uint64_t number2)
{
	p->ops[p->nr++] = (Dwarf_Op){atom, number, number2, p->at};
	/* Only a branch must have its true length, of three bytes. */
	p->at += 3;
}

static inline void op(struct program *p, uint8_t atom, uint64_t number)
{
	op2(p, atom, number, 0);
}

static inline enum dwunw_fetch eval(const struct program *p, uint64_t *value, bool *is_value)
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
