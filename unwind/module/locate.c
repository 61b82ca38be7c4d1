/* locate.c - what is known of a pc in one epoch of an address space */
#include "unwind/module/space.h"

#include "unwind/elf/elf_util.h"
#include "unwind/module/dwunw_state.h"

/* The frame of @pc as far as the mappings tell, and where to look for information: the module, and
 * the address there.  Returns NULL if there is no module. */
static struct dwunw_module *frame_of(struct dwunw_space *space, uint64_t pc, uint32_t as,
				     struct dwunw_frame *frame)
{
	/* the byte before a return address belongs to the call */
	uint64_t looked_up = pc - !!(as & DWUNW_PC_RETURN);
	const struct dwunw_segment *segment = dwunw_space_find(space, looked_up);

	*frame = (struct dwunw_frame){pc, pc, DWUNW_NO_MODULE, 0};
	if (as & DWUNW_PC_RETURN)
		frame->flags |= DWUNW_FRAME_FLAG_RETURN;
	if (as & DWUNW_PC_STALE)
		frame->flags |= DWUNW_FRAME_FLAG_STALE;
	if (!segment || segment->number == DWUNW_NO_MODULE)
		return NULL;
	frame->addr = pc - segment->bias;
	frame->module = segment->number;
	return segment->module;
}

/* Find the row of @addr, looked up @as: in the byte before, if a call returns to it.  Where there
 * is none, but a function begins at @addr, nothing called it: its address was put where a return
 * address stands (as makecontext() does).  *uncalled is set then.  Returns as dwunw_cfi_find(). */
static int find_row(struct dwunw_module *module, uint64_t addr, uint32_t as,
		    const struct dwunw_cfi_row **row, bool *uncalled)
{
	int err = dwunw_cfi_find(module->cfi, addr - !!(as & DWUNW_PC_RETURN), row);

	*uncalled = false;
	if (err || !(as & DWUNW_PC_RETURN) || (*row)->kind != DWUNW_CFI_NONE ||
	    dwunw_code_calls(module->elf, addr) > 0)
		return err;
	err = dwunw_cfi_find(module->cfi, addr, row);
	*uncalled = !err && (*row)->kind != DWUNW_CFI_NONE && !(*row)->signal;
	return err || *uncalled ? err : dwunw_cfi_find(module->cfi, addr - 1, row);
}

struct dwunw_pc_slot *dwunw_locate(struct dwunw_space *space, uint64_t pc, uint32_t as)
{
	struct dwunw_stacks *stacks = space->dw->stacks;
	struct dwunw_rule rule = {.kind = DWUNW_RULE_NONE};
	const struct dwunw_cfi_row *row;
	struct dwunw_frame frame;
	struct dwunw_module *module = frame_of(space, pc, as, &frame);
	uint32_t number;
	bool uncalled;

	if (module) {
		if (find_row(module, frame.addr, as, &row, &uncalled))
			return NULL;
		rule = dwunw_rule_pack(row);
		if (uncalled) {
			/* A flag of its own: were it to run there, its rule would be another. */
			frame.flags = (frame.flags & ~(uint32_t)DWUNW_FRAME_FLAG_RETURN) |
				      DWUNW_FRAME_FLAG_UNCALLED;
			if (rule.kind != DWUNW_RULE_END)
				rule = (struct dwunw_rule){.kind = DWUNW_RULE_SLOW};
		}
		/* Nothing called the trampoline: the kernel put its address there as the handler's
		 * return address, so the instruction before it means nothing. */
		if (row->signal)
			frame.flags = (frame.flags & ~(uint32_t)DWUNW_FRAME_FLAG_RETURN) |
				      DWUNW_FRAME_FLAG_SIGNAL;
	}
	if (dwunw_frame_table_intern(&stacks->places, &frame, &number))
		return NULL;
	/* That of a trampoline does not tell whether its pc was taken for a return address. */
	rule.as =
		(uint8_t)(frame.flags & DWUNW_FRAME_FLAG_SIGNAL ? UINT8_MAX : as >> DWUNW_PC_SHIFT);
	stacks->places.all[number].rule = rule;
	return dwunw_pc_cache_add(&space->pcs, &stacks->seed, pc, number | as);
}

int dwunw_locate_row(struct dwunw_space *space, const struct dwunw_place *place, uint32_t as,
		     const struct dwunw_cfi_row **row, bool *uncalled)
{
	struct dwunw_module *module = dwunw_module_get(space->dw, place->module);

	*row = NULL;
	*uncalled = false;
	return module ? find_row(module, place->addr, as, row, uncalled) : 0;
}
