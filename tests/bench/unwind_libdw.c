/* unwind_libdw.c - see unwind_libdw.h */
#include "tests/bench/unwind_libdw.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/cfi/stack.h"

struct file {
	struct opponent_module module;
	int fd;
	Elf *elf;
	Dwarf_CFI *cfi;
};

struct opponent {
	struct file *files; /* sorted by start */
	size_t nr, last;
	Dwfl *dwfl;
	/* the stack at hand, for the callbacks */
	const struct dwunw_regset *regs;
	const struct dwunw_stack *stack;
	uint64_t *pcs;
	size_t nr_pcs;
};

static int compare(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return x->module.start < y->module.start ? -1 : x->module.start > y->module.start;
}

/* The caller sees one thread, the stack at hand. */
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	const struct opponent *o = arg;

	(void)dwfl;
	return dwunw_stack_read(o->stack, addr, sizeof(*result), result) == DWUNW_FETCH_OK;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct opponent *o = arg;

	dwfl_thread_state_register_pc(thread, o->regs->reg[DWUNW_X86_64_RIP]);
	return dwfl_thread_state_registers(thread, 0, DWUNW_X86_64_RIP, o->regs->reg);
}

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
					 .find_debuginfo = dwfl_standard_find_debuginfo};
static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
					      .get_thread = get_thread,
					      .memory_read = read_memory,
					      .set_initial_registers = set_registers};

struct opponent *opponent_new(const struct opponent_module *modules, size_t nr)
{
	struct opponent *o = calloc(1, sizeof(*o));

	elf_version(EV_CURRENT);
	o->files = calloc(nr, sizeof(*o->files));
	o->dwfl = dwfl_begin(&callbacks);
	dwfl_report_begin(o->dwfl);
	for (size_t i = 0; i < nr; i++) {
		struct file *file = &o->files[o->nr];

		file->module = modules[i];
		file->fd = open(modules[i].path, O_RDONLY | O_CLOEXEC);
		if (file->fd < 0)
			continue;
		file->elf = elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
		file->cfi = dwarf_getcfi_elf(file->elf);
		dwfl_report_elf(o->dwfl, modules[i].path, modules[i].path, -1, modules[i].bias,
				false);
		o->nr++;
	}
	dwfl_report_end(o->dwfl, NULL, NULL);
	qsort(o->files, o->nr, sizeof(*o->files), compare);
	if (!dwfl_attach_state(o->dwfl, NULL, 1, &threads, o))
		abort();
	return o;
}

static struct file *find_file(struct opponent *o, uint64_t pc)
{
	for (size_t i = 0; i < o->nr; i++) {
		struct file *file = &o->files[(o->last + i) % o->nr];

		if (pc - file->module.start >= file->module.end - file->module.start)
			continue;
		o->last = (size_t)(file - o->files);
		return file;
	}
	return NULL;
}

/* Evaluate what nearly all rules are: a register or the CFA, and an offset.  Anything else ends the
 * stack, which is to the opponent's advantage. */
static bool evaluate(const uint64_t *reg, uint64_t cfa, const Dwarf_Op *ops, size_t nops,
		     uint64_t *value)
{
	if (ops[0].atom == DW_OP_call_frame_cfa)
		*value = cfa;
	else if (ops[0].atom == DW_OP_bregx && ops[0].number < DWUNW_MAX_ARCH_REGS)
		*value = reg[ops[0].number] + ops[0].number2;
	else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom < DW_OP_breg0 + DWUNW_MAX_ARCH_REGS)
		*value = reg[ops[0].atom - DW_OP_breg0] + ops[0].number;
	else
		return false;
	if (nops == 2 && ops[1].atom == DW_OP_plus_uconst)
		*value += ops[1].number;
	return nops == 1 || (nops == 2 && ops[1].atom == DW_OP_plus_uconst);
}

/* Read the caller's value of @r, if it is saved. */
static bool restore(Dwarf_Frame *frame, int r, uint64_t cfa, const struct dwunw_stack *stack,
		    uint64_t *reg)
{
	Dwarf_Op mem[3], *ops;
	uint64_t addr;
	size_t nops;

	return !dwarf_frame_register(frame, r, mem, &ops, &nops) && nops &&
	       evaluate(reg, cfa, ops, nops, &addr) &&
	       !dwunw_stack_read(stack, addr, sizeof(addr), &reg[r]);
}

static bool one_step(Dwarf_Frame *frame, const struct dwunw_stack *stack, uint64_t *reg)
{
	uint64_t cfa;
	Dwarf_Op *ops;
	size_t nops;

	if (dwarf_frame_cfa(frame, &ops, &nops) || !evaluate(reg, 0, ops, nops, &cfa) ||
	    !restore(frame, DWUNW_X86_64_RIP, cfa, stack, reg))
		return false;
	restore(frame, DWUNW_X86_64_RBP, cfa, stack, reg);
	reg[DWUNW_X86_64_RSP] = cfa;
	return reg[DWUNW_X86_64_RIP];
}

size_t opponent_addrframe(struct opponent *o, const struct dwunw_regset *regs,
			  const struct dwunw_stack *stack, uint64_t *pcs)
{
	uint64_t reg[DWUNW_MAX_ARCH_REGS];
	size_t nr = 0;

	memcpy(reg, regs->reg, sizeof(reg));
	while (nr < DWUNW_MAX_FRAMES) {
		uint64_t pc = reg[DWUNW_X86_64_RIP];
		bool is_return = nr || regs->flags & DWUNW_EVENT_RETURN_ADDRESS, more;
		struct file *file = find_file(o, pc - is_return);
		Dwarf_Frame *frame;

		pcs[nr++] = pc;
		if (!file ||
		    dwarf_cfi_addrframe(file->cfi, pc - is_return - file->module.bias, &frame))
			break;
		more = one_step(frame, stack, reg);
		free(frame);
		if (!more)
			break;
	}
	return nr;
}

static int note_frame(Dwfl_Frame *frame, void *arg)
{
	struct opponent *o = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || !pc || o->nr_pcs == DWUNW_MAX_FRAMES)
		return DWARF_CB_ABORT;
	o->pcs[o->nr_pcs++] = pc;
	return DWARF_CB_OK;
}

size_t opponent_dwfl(struct opponent *o, const struct dwunw_regset *regs,
		     const struct dwunw_stack *stack, uint64_t *pcs)
{
	o->regs = regs;
	o->stack = stack;
	o->pcs = pcs;
	o->nr_pcs = 0;
	dwfl_getthread_frames(o->dwfl, 1, note_frame, o);
	return o->nr_pcs;
}

void opponent_free(struct opponent *o)
{
	dwfl_end(o->dwfl);
	for (size_t i = 0; i < o->nr; i++) {
		dwarf_cfi_end(o->files[i].cfi);
		elf_end(o->files[i].elf);
		close(o->files[i].fd);
	}
	free(o->files);
	free(o);
}
