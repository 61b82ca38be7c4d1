/* expr.c - a stack machine for DWARF expressions (DWARF 5, section 2.5) */
#include "unwind/cfi/expr.h"

#include "unwind/cfi/cfi_bytes.h"

/* Read the operands of op->atom.  False when it has no place here. */
static bool decode_operands(struct dwunw_bytes *in, struct dwunw_expr_op *op)
{
	switch (op->atom) {
	case DW_OP_const1u:
	case DW_OP_const2u:
	case DW_OP_const4u:
	case DW_OP_const8u:
		op->number = dwunw_bytes_u(in, 1u << (op->atom - DW_OP_const1u) / 2);
		return true;
	case DW_OP_const1s:
	case DW_OP_const2s:
	case DW_OP_const4s:
	case DW_OP_const8s:
		op->number = dwunw_bytes_s(in, 1u << (op->atom - DW_OP_const1s) / 2);
		return true;
	case DW_OP_addr:
		op->number = dwunw_bytes_u(in, 8);
		return true;
	case DW_OP_pick:
	case DW_OP_deref_size:
		op->number = dwunw_bytes_u(in, 1);
		return true;
	case DW_OP_skip:
	case DW_OP_bra:
		op->number = dwunw_bytes_s(in, 2);
		return true;
	case DW_OP_constu:
	case DW_OP_plus_uconst:
	case DW_OP_regx:
		op->number = dwunw_bytes_uleb(in);
		return true;
	case DW_OP_consts:
	case DW_OP_breg0 ... DW_OP_breg31:
		op->number = dwunw_bytes_sleb(in);
		return true;
	case DW_OP_bregx:
		op->number = dwunw_bytes_uleb(in);
		op->number2 = dwunw_bytes_sleb(in);
		return true;
	case DW_OP_deref:
	case DW_OP_dup ... DW_OP_over:
	case DW_OP_swap ... DW_OP_rot:
	case DW_OP_abs ... DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
	case DW_OP_lit0 ... DW_OP_reg31:
	case DW_OP_nop:
	case DW_OP_call_frame_cfa:
	case DW_OP_stack_value:
		return true;
	}
	return false;
}

bool dwunw_expr_decode(const uint8_t *expr, size_t len, size_t *at, struct dwunw_expr_op *op)
{
	struct dwunw_bytes in = {expr + *at, expr + len, false};

	*op = (struct dwunw_expr_op){.atom = (uint8_t)dwunw_bytes_u(&in, 1)};
	if (in.bad || !decode_operands(&in, op) || in.bad)
		return false;
	*at = (size_t)(in.at - expr);
	return true;
}

struct machine {
	const struct dwunw_expr_env *env;
	enum dwunw_fetch err; /* the first thing that went wrong; sticky */
	bool is_value;
	size_t depth;
	uint64_t stack[DWUNW_EXPR_MAX_DEPTH];
	const uint8_t *expr;
	size_t len;
	bool starts_known;
	uint64_t starts[DWUNW_EXPR_MAX_LEN / 64 + 1]; /* bit n: an operation begins at byte n */
};

static void fail(struct machine *m, enum dwunw_fetch err)
{
	if (m->err == DWUNW_FETCH_OK)
		m->err = err;
}

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == DWUNW_EXPR_MAX_DEPTH)
		fail(m, DWUNW_FETCH_BAD);
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth)
		return m->stack[--m->depth];
	fail(m, DWUNW_FETCH_BAD);
	return 0;
}

static void pick(struct machine *m, uint64_t nr)
{
	if (nr < m->depth)
		push(m, m->stack[m->depth - 1 - nr]);
	else
		fail(m, DWUNW_FETCH_BAD);
}

static void push_register(struct machine *m, uint64_t nr, uint64_t offset)
{
	if (nr >= DWUNW_MAX_ARCH_REGS)
		fail(m, DWUNW_FETCH_BAD);
	else if (!(m->env->known & 1u << nr))
		fail(m, DWUNW_FETCH_UNKNOWN);
	else
		push(m, m->env->reg[nr] + offset);
}

static void deref(struct machine *m, uint64_t size)
{
	uint64_t value = 0, addr = pop(m);

	if (m->err)
		return;
	if (size < 1 || size > sizeof(value)) {
		fail(m, DWUNW_FETCH_BAD);
		return;
	}
	fail(m, dwunw_stack_read(m->env->stack, addr, size, &value));
	push(m, value);
}

/* Operations that push a constant or what the frame has.  False when @op is none. */
static bool push_known(struct machine *m, const struct dwunw_expr_op *op)
{
	switch (op->atom) {
	case DW_OP_lit0 ... DW_OP_lit31:
		push(m, op->atom - DW_OP_lit0);
		return true;
	case DW_OP_addr:
		push(m, op->number + m->env->bias);
		return true;
	case DW_OP_const1u ... DW_OP_consts:
		push(m, op->number);
		return true;
	case DW_OP_reg0 ... DW_OP_reg31:
		push_register(m, op->atom - DW_OP_reg0, 0);
		m->is_value = true;
		return true;
	case DW_OP_regx:
		push_register(m, op->number, 0);
		m->is_value = true;
		return true;
	case DW_OP_breg0 ... DW_OP_breg31:
		push_register(m, op->atom - DW_OP_breg0, op->number);
		return true;
	case DW_OP_bregx:
		push_register(m, op->number, op->number2);
		return true;
	case DW_OP_call_frame_cfa:
		if (m->env->cfa)
			push(m, *m->env->cfa);
		else
			fail(m, DWUNW_FETCH_BAD);
		return true;
	}
	return false;
}

/* Operations on the stack itself or on its top.  False when @op is none. */
static bool stack_change(struct machine *m, const struct dwunw_expr_op *op)
{
	uint64_t a, b, c;

	switch (op->atom) {
	case DW_OP_dup:
		pick(m, 0);
		return true;
	case DW_OP_drop:
		pop(m);
		return true;
	case DW_OP_over:
		pick(m, 1);
		return true;
	case DW_OP_pick:
		pick(m, op->number);
		return true;
	case DW_OP_swap:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		return true;
	case DW_OP_rot: /* the top becomes the third */
		a = pop(m);
		b = pop(m);
		c = pop(m);
		push(m, a);
		push(m, c);
		push(m, b);
		return true;
	case DW_OP_deref:
		deref(m, sizeof(uint64_t));
		return true;
	case DW_OP_deref_size:
		deref(m, op->number);
		return true;
	}
	return false;
}

/* Operations that replace the top by a value made of it.  False when @op is none. */
static bool unary(struct machine *m, const struct dwunw_expr_op *op)
{
	uint64_t a;

	switch (op->atom) {
	case DW_OP_abs:
		a = pop(m);
		push(m, (int64_t)a < 0 ? 0 - a : a);
		return true;
	case DW_OP_neg:
		push(m, 0 - pop(m));
		return true;
	case DW_OP_not:
		push(m, ~pop(m));
		return true;
	case DW_OP_plus_uconst:
		push(m, pop(m) + op->number);
		return true;
	}
	return false;
}

static uint64_t shift_right_signed(uint64_t a, uint64_t by)
{
	uint64_t sign = (int64_t)a < 0 ? UINT64_MAX : 0;

	if (by >= 64)
		return sign;
	return by ? a >> by | sign << (64 - by) : a;
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
	if (!b)
		fail(m, DWUNW_FETCH_BAD);
	/* Not by the processor: INT64_MIN / -1 would trap. */
	if (!b || b == UINT64_MAX)
		return 0 - a;
	return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t modulo(struct machine *m, uint64_t a, uint64_t b)
{
	if (b)
		return a % b;
	fail(m, DWUNW_FETCH_BAD);
	return 0;
}

static uint64_t binary(struct machine *m, unsigned int atom, uint64_t a, uint64_t b)
{
	switch (atom) {
	case DW_OP_and:
		return a & b;
	case DW_OP_div:
		return divide(m, a, b);
	case DW_OP_minus:
		return a - b;
	case DW_OP_mod:
		return modulo(m, a, b);
	case DW_OP_mul:
		return a * b;
	case DW_OP_or:
		return a | b;
	case DW_OP_plus:
		return a + b;
	case DW_OP_shl:
		return b < 64 ? a << b : 0;
	case DW_OP_shr:
		return b < 64 ? a >> b : 0;
	case DW_OP_shra:
		return shift_right_signed(a, b);
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_eq:
		return a == b;
	case DW_OP_ne:
		return a != b;
	case DW_OP_ge:
		return (int64_t)a >= (int64_t)b;
	case DW_OP_gt:
		return (int64_t)a > (int64_t)b;
	case DW_OP_le:
		return (int64_t)a <= (int64_t)b;
	case DW_OP_lt:
		return (int64_t)a < (int64_t)b;
	}
	fail(m, DWUNW_FETCH_BAD); /* an operation that is not known here */
	return 0;
}

static void execute(struct machine *m, const struct dwunw_expr_op *op)
{
	uint64_t a, b;

	if (push_known(m, op) || stack_change(m, op) || unary(m, op))
		return;
	b = pop(m);
	a = pop(m);
	push(m, binary(m, op->atom, a, b));
}

/* Note where operations begin, up to the first that is none. */
static void find_starts(struct machine *m)
{
	struct dwunw_expr_op op;
	size_t at = 0;

	if (m->starts_known)
		return;
	memset(m->starts, 0, sizeof(m->starts));
	do
		m->starts[at / 64] |= 1ull << at % 64;
	while (at < m->len && dwunw_expr_decode(m->expr, m->len, &at, &op));
	m->starts_known = true;
}

/* Go @by bytes on from @at.  The end can be reached this way, the middle of an operation cannot. */
static size_t branch(struct machine *m, size_t at, uint64_t by)
{
	uint64_t target = at + by;

	find_starts(m);
	if (target <= m->len && m->starts[target / 64] & 1ull << target % 64)
		return target;
	fail(m, DWUNW_FETCH_BAD);
	return at;
}

static void run(struct machine *m)
{
	struct dwunw_expr_op op;
	size_t at = 0, steps = 0;

	while (!m->err && at < m->len) {
		if (++steps > DWUNW_EXPR_MAX_STEPS ||
		    !dwunw_expr_decode(m->expr, m->len, &at, &op)) {
			fail(m, DWUNW_FETCH_BAD);
			return;
		}
		switch (op.atom) {
		case DW_OP_nop:
			break;
		case DW_OP_stack_value:
			m->is_value = true;
			break;
		case DW_OP_bra:
			if (!pop(m))
				break;
			/* fallthrough */
		case DW_OP_skip:
			at = branch(m, at, op.number);
			break;
		default:
			execute(m, &op);
		}
	}
}

enum dwunw_fetch dwunw_expr_eval(const struct dwunw_expr_env *env, const uint8_t *expr, size_t len,
				 uint64_t *value, bool *is_value)
{
	struct machine m;
	uint64_t top;

	if (len > DWUNW_EXPR_MAX_LEN)
		return DWUNW_FETCH_BAD;
	m.env = env;
	m.expr = expr;
	m.len = len;
	m.err = DWUNW_FETCH_OK;
	m.is_value = m.starts_known = false;
	m.depth = 0;
	if (env->cfa)
		push(&m, *env->cfa);
	run(&m);
	top = pop(&m);
	if (m.err)
		return m.err;
	*value = top;
	*is_value = m.is_value;
	return DWUNW_FETCH_OK;
}
