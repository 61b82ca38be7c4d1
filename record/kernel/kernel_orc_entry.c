/* kernel_orc_entry.c - see kernel_orc_entry.h */
#include "record/kernel/kernel_orc_entry.h"

#include <errno.h>
#include <string.h>

/* enum of arch/x86/include/asm/orc_types.h: registers that a CFA is computed from. */
enum { REG_NONE = 0, REG_PREV_SP = 1, REG_BP = 4, REG_SP = 5, REG_BP_INDIRECT = 8 };

#define TYPE_END   1 /* from 6.4 on */
#define TYPE_CALL  2
#define TYPE_BITS  3
#define OLD_BITS   2  /* before 6.4, where a call is type 0 */
#define TYPE_BEGIN 40 /* the bit at which the type begins */

const struct kernel_orc_frame orc_without_entry = {
	.kind = KERNEL_ORC_CALL, .cfa = KERNEL_ORC_FROM_FP, .offset = 16, .saved = -16};

/* The parts of an entry. */
struct entry {
	int16_t sp_offset, bp_offset;
	uint8_t sp_reg, bp_reg;
};

bool orc_find_member(const struct btf *btf, const char *type, const char *name, uint32_t *bit,
		     uint32_t *bits)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	const struct btf_member *m = t ? btf_members(t) : NULL;

	for (__u32 i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), name)) {
			*bit = btf_member_bit_offset(t, i);
			*bits = btf_member_bitfield_size(t, i);
			return true;
		}
	return false;
}

int orc_format_read(struct orc_format *f, const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "orc_entry", BTF_KIND_STRUCT);
	uint32_t bit, bits, end, end_bits;

	memset(f, 0, sizeof(*f));
	if (id < 0 || btf__type_by_id(btf, (__u32)id)->size != ORC_ENTRY ||
	    !orc_find_member(btf, "orc_entry", "type", &bit, &bits) || bit != TYPE_BEGIN)
		return -ENOTSUP;
	if (bits == TYPE_BITS)
		return 0;
	/* Linux 6.3 has another bit before it. */
	if (bits != OLD_BITS || !orc_find_member(btf, "orc_entry", "end", &end, &end_bits) ||
	    end <= TYPE_BEGIN || end >= 8 * ORC_ENTRY)
		return -ENOTSUP;
	f->has_old_types = true;
	f->end_bit = (uint8_t)end;
	return 0;
}

static bool decode_call(const struct entry *e, struct kernel_orc_frame *f)
{
	if (e->sp_reg == REG_BP)
		f->cfa = KERNEL_ORC_FROM_FP;
	else if (e->sp_reg == REG_BP_INDIRECT)
		f->cfa = KERNEL_ORC_AT_FP;
	else if (e->sp_reg != REG_SP)
		return false;
	f->offset = e->sp_offset;
	f->saved = e->bp_reg == REG_NONE ? 0 : e->bp_offset;
	f->saved_at = e->bp_reg == REG_BP;
	return e->bp_reg == REG_NONE || e->bp_reg == REG_PREV_SP || (f->saved_at && !e->bp_offset);
}

void orc_decode(const struct orc_format *f, uint64_t entry, struct kernel_orc_frame *frame)
{
	/* Two numbers of 16 bits, two of 4, and the type. */
	const struct entry e = {.sp_offset = (int16_t)(uint16_t)entry,
				.bp_offset = (int16_t)(uint16_t)(entry >> 16),
				.sp_reg = entry >> 32 & 15,
				.bp_reg = entry >> 36 & 15};
	/* enum unwind_hint types: before 6.4 call, regs, partial regs, and a bit for the end; since
	 * then undefined, end, call, regs, partial regs. */
	unsigned int bits = f->has_old_types ? OLD_BITS : TYPE_BITS;
	unsigned int type = (unsigned int)(entry >> TYPE_BEGIN) & ((1u << bits) - 1);
	unsigned int call = f->has_old_types ? 0 : TYPE_CALL;
	bool ends = f->has_old_types ? e.sp_reg == REG_NONE && entry >> f->end_bit & 1
				     : type == TYPE_END;

	memset(frame, 0, sizeof(*frame));
	frame->kind = KERNEL_ORC_OTHER;
	if (ends) {
		frame->kind = KERNEL_ORC_END;
	} else if (type == call + 1 && e.sp_reg == REG_SP && !e.sp_offset) {
		frame->kind = KERNEL_ORC_REGS;
	} else if (type == call) {
		frame->kind = decode_call(&e, frame) ? KERNEL_ORC_CALL : KERNEL_ORC_OTHER;
	}
}
