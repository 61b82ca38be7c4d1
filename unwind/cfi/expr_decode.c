/* expr_decode.c - the operations of a DWARF expression and their operands */
#include "unwind/cfi/cfi_bytes.h"
#include "unwind/cfi/expr.h"

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
