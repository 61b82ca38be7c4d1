/* cfi_rules.c - see cfi_rules.h */
#include "unwind/cfi/cfi_rules.h"

#include "unwind/cfi/cfi_points.h"

/* What copying all rules costs, beside an instruction. */
#define COPY_WORK 8

/* Rules that were remembered, as often as it was done without a change in between. */
struct remembered {
	uint32_t times;
	struct dwunw_cfi_rules rules;
};

struct machine {
	const struct dwunw_fde *fde;
	const struct dwunw_cfi_rules *initial; /* NULL: those are just being made */
	struct dwunw_cfi_rules *now;
	struct dwunw_bytes in;
	uint64_t addr; /* the rules for this address are wanted */
	uint32_t work;
	bool done;    /* all instructions up to addr were executed */
	bool bad;     /* an instruction makes no sense */
	bool changed; /* since the last that was remembered */
	uint32_t depth;
	struct dwunw_cfi_points *points; /* or NULL */
	uint32_t point_work;		 /* when the last checkpoint was made */
	struct remembered stack[DWUNW_CFI_MAX_REMEMBERED];
};

/* A call, on purpose: a copy of this length in line is "rep movs", which takes four times as long.
 */
static void copy_rules(struct dwunw_cfi_rules *to, const struct dwunw_cfi_rules *from)
{
	memmove(to, from, sizeof(*to));
}

static void make_checkpoint(struct machine *m)
{
	if (m->depth || m->work - m->point_work < DWUNW_CFI_CHECKPOINT_WORK)
		return;
	m->point_work = m->work;
	if (m->points)
		dwunw_cfi_points_add(m->points, m->fde->entry, m->in.at, m->work, m->now);
}

/* The instructions that follow are for addresses from @addr on. */
static void go_to(struct machine *m, uint64_t addr)
{
	if (addr > m->addr) {
		m->now->end = addr;
		m->done = true;
		return;
	}
	m->bad |= addr < m->now->start;
	m->now->start = addr;
	make_checkpoint(m);
}

static void advance(struct machine *m, uint64_t delta)
{
	uint64_t addr;

	if (__builtin_mul_overflow(delta, m->fde->cie.code_align, &delta) ||
	    __builtin_add_overflow(m->now->start, delta, &addr))
		addr = UINT64_MAX;
	go_to(m, addr);
}

static void set_rule(struct machine *m, uint64_t reg, struct dwunw_cfi_rule rule)
{
	m->changed = true;
	if (reg < DWUNW_CFI_REGS)
		m->now->reg[reg] = rule;
}

/* One without an expression. */
static void set_offset(struct machine *m, uint64_t reg, enum dwunw_cfi_rule_kind kind, uint64_t off)
{
	set_rule(m, reg, (struct dwunw_cfi_rule){.kind = (uint8_t)kind, .off = off});
}

/* A register, and an offset from it. */
static struct dwunw_cfi_rule from_register(uint64_t reg, uint64_t off)
{
	return (struct dwunw_cfi_rule){
		.kind = DWUNW_CFI_REGISTER, .reg = (uint8_t)(reg < 255 ? reg : 255), .off = off};
}

/* The expression that follows. */
static struct dwunw_cfi_rule expression(struct machine *m, enum dwunw_cfi_rule_kind kind)
{
	uint64_t len = dwunw_bytes_uleb(&m->in);
	const uint8_t *expr = dwunw_bytes_take(&m->in, len);

	m->changed = true;
	m->bad |= !expr || len > UINT32_MAX;
	return (struct dwunw_cfi_rule){
		.kind = (uint8_t)kind, .expr_len = (uint32_t)len, .expr = expr};
}

static void restore(struct machine *m, uint64_t reg)
{
	m->changed = true;
	if (!m->initial)
		m->bad = true;
	else if (reg < DWUNW_CFI_REGS)
		m->now->reg[reg] = m->initial->reg[reg];
}

static void set_cfa(struct machine *m, uint64_t reg, uint64_t off)
{
	m->changed = true;
	m->now->cfa_off = off;
	m->now->cfa = from_register(reg, off);
}

/* DWARF wants a register as the CFA's rule here.  After an expression libgcc keeps the number for
 * when there is one again, and hand-written code (libgcrypt's) relies on that. */
static void set_cfa_offset(struct machine *m, uint64_t off)
{
	m->changed = true;
	m->now->cfa_off = off;
	if (m->now->cfa.kind == DWUNW_CFI_REGISTER)
		m->now->cfa.off = off;
}

static void remember(struct machine *m)
{
	if (m->depth && !m->changed) {
		m->stack[m->depth - 1].times++;
		return;
	}
	if (m->depth == DWUNW_CFI_MAX_REMEMBERED) {
		m->bad = true;
		return;
	}
	m->stack[m->depth].times = 1;
	copy_rules(&m->stack[m->depth++].rules, m->now);
	m->work += COPY_WORK;
	m->changed = false;
}

/* GNU's unwinders restore the rule of the CFA, too, and compilers rely on it. */
static void restore_remembered(struct machine *m)
{
	uint64_t start = m->now->start;
	struct remembered *top;

	if (!m->depth) {
		m->bad = true;
		return;
	}
	top = &m->stack[m->depth - 1];
	if (m->changed) {
		copy_rules(m->now, &top->rules);
		m->now->start = start;
		m->work += COPY_WORK;
	}
	m->changed = false;
	if (!--top->times) {
		m->depth--;
		m->changed = true; /* compared with the one below */
	}
}

/* The offset that follows, in units of the CIE. */
static uint64_t factored(struct machine *m)
{
	return dwunw_bytes_uleb(&m->in) * m->fde->cie.data_align;
}

static uint64_t factored_signed(struct machine *m)
{
	return dwunw_bytes_sleb(&m->in) * m->fde->cie.data_align;
}

/* Instructions about addresses and about the CFA.  False when @op is none. */
static bool execute_row(struct machine *m, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		go_to(m, dwunw_fde_address(m->fde, &m->in));
		return true;
	case DW_CFA_advance_loc1 ... DW_CFA_advance_loc4:
		advance(m, dwunw_bytes_u(&m->in, 1u << (op - DW_CFA_advance_loc1)));
		return true;
	case DW_CFA_MIPS_advance_loc8:
		advance(m, dwunw_bytes_u(&m->in, 8));
		return true;
	case DW_CFA_def_cfa:
		reg = dwunw_bytes_uleb(&m->in);
		set_cfa(m, reg, dwunw_bytes_uleb(&m->in));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = dwunw_bytes_uleb(&m->in);
		set_cfa(m, reg, factored_signed(m));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa(m, dwunw_bytes_uleb(&m->in), m->now->cfa_off);
		return true;
	case DW_CFA_def_cfa_offset:
		set_cfa_offset(m, dwunw_bytes_uleb(&m->in));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_offset(m, factored_signed(m));
		return true;
	case DW_CFA_def_cfa_expression:
		m->now->cfa = expression(m, DWUNW_CFI_VAL_EXPR);
		return true;
	case DW_CFA_remember_state:
		remember(m);
		return true;
	case DW_CFA_restore_state:
		restore_remembered(m);
		return true;
	case DW_CFA_GNU_args_size: /* only matters to code that continues in a landing pad */
		dwunw_bytes_uleb(&m->in);
		return true;
	}
	return false;
}

/* Instructions about one register. */
static void execute_register(struct machine *m, uint8_t op)
{
	uint64_t reg = dwunw_bytes_uleb(&m->in);

	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(m, reg, DWUNW_CFI_OFFSET, factored(m));
		break;
	case DW_CFA_offset_extended_sf:
		set_offset(m, reg, DWUNW_CFI_OFFSET, factored_signed(m));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(m, reg, DWUNW_CFI_OFFSET, -factored(m));
		break;
	case DW_CFA_val_offset:
		set_offset(m, reg, DWUNW_CFI_VAL_OFFSET, factored(m));
		break;
	case DW_CFA_val_offset_sf:
		set_offset(m, reg, DWUNW_CFI_VAL_OFFSET, factored_signed(m));
		break;
	case DW_CFA_restore_extended:
		restore(m, reg);
		break;
	case DW_CFA_undefined:
		set_offset(m, reg, DWUNW_CFI_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_offset(m, reg, DWUNW_CFI_SAME, 0);
		break;
	case DW_CFA_register:
		set_rule(m, reg, from_register(dwunw_bytes_uleb(&m->in), 0));
		break;
	case DW_CFA_expression:
		set_rule(m, reg, expression(m, DWUNW_CFI_EXPR));
		break;
	case DW_CFA_val_expression:
		set_rule(m, reg, expression(m, DWUNW_CFI_VAL_EXPR));
		break;
	default:
		m->bad = true;
	}
}

/* Execute what makes up most of all: short advances, and offsets of one byte.  The same as run()
 * does with them, but at a third of the time, for lack of steps by way of memory. */
static void run_usual(struct machine *m)
{
	const uint8_t *at = m->in.at, *last = m->in.end - 1;
	uint64_t addr = m->now->start, align = m->fde->cie.data_align;
	uint32_t work = m->work, stop = m->point_work + DWUNW_CFI_CHECKPOINT_WORK - 1;

	if (stop > DWUNW_CFI_MAX_WORK)
		stop = DWUNW_CFI_MAX_WORK;
	for (; at < last && work < stop; work++) {
		uint8_t op = *at, number = at[1];

		if ((op & 0xc0) == DW_CFA_advance_loc) {
			if ((op & 0x3fu) > m->addr - addr)
				break;
			addr += op & 0x3f;
			at++;
			continue;
		}
		if (number > 0x7f)
			break;
		if (op == DW_CFA_def_cfa_offset)
			set_cfa_offset(m, number);
		else if ((op & 0xc0) == DW_CFA_offset)
			set_offset(m, op & 0x3f, DWUNW_CFI_OFFSET, number * align);
		else
			break;
		at += 2;
	}
	m->in.at = at;
	m->now->start = addr;
	m->work = work;
}

static bool run(struct machine *m)
{
	while (!m->done && m->in.at < m->in.end) {
		uint8_t op;

		if (m->fde->cie.code_align == 1)
			run_usual(m);
		if (m->in.at == m->in.end)
			return true;
		op = *m->in.at++;
		if (++m->work > DWUNW_CFI_MAX_WORK)
			return false;
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			advance(m, op & 0x3f);
			break;
		case DW_CFA_offset:
			set_offset(m, op & 0x3f, DWUNW_CFI_OFFSET, factored(m));
			break;
		case DW_CFA_restore:
			restore(m, op & 0x3f);
			break;
		default:
			if (!execute_row(m, op))
				execute_register(m, op);
		}
		if (m->bad || m->in.bad)
			return false;
	}
	return true;
}

/* Set all but the stack, which need not be. */
static void machine_init(struct machine *m, const struct dwunw_fde *fde,
			 struct dwunw_cfi_rules *rules, uint64_t addr)
{
	m->fde = fde;
	m->initial = NULL;
	m->now = rules;
	m->in = (struct dwunw_bytes){fde->insns, fde->insns_end, false};
	m->addr = addr;
	m->work = m->depth = m->point_work = 0;
	m->done = m->bad = false;
	m->changed = true;
	m->points = NULL;
}

bool dwunw_cfi_rules_begin(struct dwunw_cfi_rules *initial, const struct dwunw_fde *fde)
{
	struct machine m;

	*initial = (struct dwunw_cfi_rules){.signal = fde->cie.signal};
	machine_init(&m, fde, initial, UINT64_MAX);
	m.in.at = fde->cie.insns;
	m.in.end = fde->cie.insns_end;
	return run(&m);
}

bool dwunw_cfi_rules_make(struct dwunw_cfi_rules *rules, const struct dwunw_fde *fde,
			  const struct dwunw_cfi_rules *initial, uint64_t addr,
			  struct dwunw_cfi_points *points)
{
	const struct dwunw_cfi_checkpoint *point =
		points ? dwunw_cfi_points_find(points, fde->entry, addr) : NULL;
	struct machine m;

	machine_init(&m, fde, rules, addr);
	m.initial = initial;
	m.points = points;
	if (point) {
		copy_rules(rules, &point->rules);
		m.in.at = point->at;
		m.work = m.point_work = point->work;
	} else {
		copy_rules(rules, initial);
		rules->start = fde->start;
	}
	rules->end = fde->end;
	if (!run(&m))
		return false;
	if (rules->end > fde->end)
		rules->end = fde->end;
	return true;
}
