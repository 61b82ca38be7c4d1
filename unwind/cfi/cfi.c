/* cfi.c - rows of call frame information, cached by address */
#include "unwind/cfi/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "unwind/cfi/cfi_points.h"
#include "unwind/cfi/cfi_section.h"
#include "unwind/cfi/cfi_spans.h"
#include "unwind/cfi/cfi_table.h"
#include "unwind/cfi/go_rows.h"
#include "unwind/elf/addr_index.h"

static bool fits(int32_t *to, uint64_t number)
{
	*to = (int32_t)(uint32_t)number;
	return (uint64_t)(int64_t)*to == number;
}

/* Read "register and offset" (DW_OP_breg0 to 16) from @in. */
static bool take_breg(struct dwunw_bytes *in, uint8_t *reg, int32_t *off)
{
	uint64_t op = dwunw_bytes_u(in, 1), number = dwunw_bytes_sleb(in);

	*reg = (uint8_t)(op - DW_OP_breg0);
	return !in->bad && op >= DW_OP_breg0 && op < DW_OP_breg0 + DWUNW_CFI_REGS &&
	       fits(off, number);
}

/* What linkers write for a PLT, after DW_OP_breg7: an entry pushes a number before its last jump,
 * and where that is depends on the kind of PLT. */
static bool take_plt(struct dwunw_bytes *in, uint8_t *n)
{
	static const uint8_t before[] = {DW_OP_breg0 + DWUNW_CFI_RA, 0, DW_OP_lit15, DW_OP_and};
	static const uint8_t after[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	size_t len = sizeof(before) + 1 + sizeof(after);
	const uint8_t *at = dwunw_bytes_left(in) == len ? in->at : NULL;

	if (!at || memcmp(at, before, sizeof(before)) ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)))
		return false;
	*n = (uint8_t)(at[sizeof(before)] - DW_OP_lit0);
	return *n < 16;
}

static enum dwunw_cfa_shape cfa_shape(struct dwunw_cfi_row *row, const struct dwunw_cfi_rule *cfa)
{
	struct dwunw_bytes in;

	if (cfa->kind == DWUNW_CFI_REGISTER) {
		row->cfa_reg = cfa->reg;
		return cfa->reg < DWUNW_CFI_REGS && fits(&row->cfa_off, cfa->off)
			       ? DWUNW_CFA_REG_OFFSET
			       : DWUNW_CFA_OTHER;
	}
	in = (struct dwunw_bytes){cfa->expr, cfa->expr + cfa->expr_len, false};
	if (!take_breg(&in, &row->cfa_reg, &row->cfa_off))
		return DWUNW_CFA_OTHER;
	if (dwunw_bytes_left(&in) == 1 && *in.at == DW_OP_deref)
		return DWUNW_CFA_DEREF;
	return row->cfa_reg == DWUNW_CFI_RSP && take_plt(&in, &row->plt_n) ? DWUNW_CFA_PLT
									   : DWUNW_CFA_OTHER;
}

/* Whether @rule says "at an offset from the CFA", or, and then *by_reg is set, "from the value of
 * the register that the CFA comes from". */
static bool is_saved(const struct dwunw_cfi_row *row, const struct dwunw_cfi_rule *rule,
		     int32_t *off, bool *by_reg)
{
	struct dwunw_bytes in;
	uint8_t reg;

	*by_reg = rule->kind == DWUNW_CFI_EXPR;
	if (rule->kind == DWUNW_CFI_OFFSET)
		return fits(off, rule->off);
	if (rule->kind != DWUNW_CFI_EXPR || row->cfa_shape != DWUNW_CFA_DEREF)
		return false;
	in = (struct dwunw_bytes){rule->expr, rule->expr + rule->expr_len, false};
	return take_breg(&in, &reg, off) && !dwunw_bytes_left(&in) && reg == row->cfa_reg;
}

/* Take the rule of @reg into the row.  False when it does not fit there. */
static bool pack_register(struct dwunw_cfi_row *row, unsigned int reg,
			  const struct dwunw_cfi_rule *rule)
{
	bool by_reg;
	int32_t off;

	if (rule->kind == DWUNW_CFI_UNSPECIFIED || rule->kind == DWUNW_CFI_SAME)
		return true;
	if (reg == DWUNW_CFI_RSP) /* the caller's rsp is the CFA, if nothing better is said */
		return rule->kind == DWUNW_CFI_UNDEFINED ||
		       (rule->kind == DWUNW_CFI_VAL_OFFSET && !rule->off);
	if (rule->kind == DWUNW_CFI_UNDEFINED) {
		row->undefined |= 1u << reg;
		return true;
	}
	if (!(DWUNW_CFI_CALLEE_SAVED & 1u << reg) || !is_saved(row, rule, &off, &by_reg))
		return false;
	row->by_reg |= (uint8_t)(by_reg << row->nr_saved);
	row->reg[row->nr_saved] = (uint8_t)reg;
	row->off[row->nr_saved++] = off;
	return true;
}

/* Take all but the CFA into the row. */
static bool pack_registers(struct dwunw_cfi_row *row, const struct dwunw_cfi_rules *rules)
{
	const struct dwunw_cfi_rule *ra = &rules->reg[DWUNW_CFI_RA];

	if (ra->kind != DWUNW_CFI_OFFSET || !fits(&row->ra_off, ra->off))
		return false;
	for (unsigned int reg = 0; reg < DWUNW_CFI_RA; reg++)
		if (!pack_register(row, reg, &rules->reg[reg]))
			return false;
	return true;
}

static enum dwunw_cfi_kind kind_of(const struct dwunw_cfi_rules *rules)
{
	switch (rules->reg[DWUNW_CFI_RA].kind) {
	case DWUNW_CFI_UNDEFINED:
		return DWUNW_CFI_OUTERMOST;
	case DWUNW_CFI_UNSPECIFIED:
	case DWUNW_CFI_SAME: /* a function that left it in rip would never return */
		return DWUNW_CFI_NONE;
	}
	return rules->cfa.kind == DWUNW_CFI_UNSPECIFIED ? DWUNW_CFI_NONE : DWUNW_CFI_FULL;
}

/* Set all of *row but full.  If it becomes FULL, @rules are still needed. */
static void pack_row(struct dwunw_cfi_row *row, const struct dwunw_cfi_rules *rules)
{
	struct dwunw_cfi_row packed;

	*row = (struct dwunw_cfi_row){.kind = (uint8_t)kind_of(rules), .signal = rules->signal};
	if (row->kind != DWUNW_CFI_FULL)
		return;
	row->cfa_shape = (uint8_t)cfa_shape(row, &rules->cfa);
	packed = *row;
	if (packed.cfa_shape == DWUNW_CFA_OTHER || !pack_registers(&packed, rules))
		return;
	packed.whole = packed.cfa_shape != DWUNW_CFA_REG_OFFSET;
	if (!packed.whole)
		packed.kind = DWUNW_CFI_SIMPLE;
	*row = packed;
}

#define FULLS_IN_CHUNK 16

/* Rules of FULL rows, which stay where they are. */
struct fulls {
	struct fulls *next;
	struct dwunw_cfi_rules rules[FULLS_IN_CHUNK];
};

/* One section, and what was last found in it. */
struct source {
	struct dwunw_cfi_table table;
	struct dwunw_fde fde;
	uint64_t initial_of; /* place of the CIE that initial is of, plus one; or 0 */
	bool initial_good;
	struct dwunw_cfi_rules initial;
};

struct dwunw_cfi {
	Elf *elf;
	bool opened, debug_opened;	 /* the sections were looked for */
	struct source eh, debug;	 /* debug is asked only when eh does not know */
	struct dwunw_pclntab go;	 /* asked before both */
	void *debug_owned;		 /* the uncompressed section, or NULL */
	struct dwunw_cfi_points *points; /* of long FDEs; NULL: none was met */
	struct dwunw_addr_index index;	 /* from an address to its row */
	struct dwunw_cfi_spans spans;	 /* by the pair of eh.table that leads to the FDE */
	struct dwunw_cfi_row *rows;
	uint32_t nr_rows;
	size_t room;
	struct fulls *fulls;
	uint32_t nr_fulls; /* used in the first chunk */
};

struct dwunw_cfi *dwunw_cfi_new(Elf *elf)
{
	struct dwunw_cfi *cfi = calloc(1, sizeof(*cfi));

	if (cfi)
		cfi->elf = elf;
	return cfi;
}

void dwunw_cfi_free(struct dwunw_cfi *cfi)
{
	if (!cfi)
		return;
	while (cfi->fulls) {
		struct fulls *next = cfi->fulls->next;

		free(cfi->fulls);
		cfi->fulls = next;
	}
	free(cfi->rows);
	free(cfi->points);
	dwunw_addr_index_release(&cfi->index);
	dwunw_cfi_spans_release(&cfi->spans);
	dwunw_cfi_table_release(&cfi->eh.table);
	dwunw_cfi_table_release(&cfi->debug.table);
	free(cfi->debug_owned);
	free(cfi);
}

static void open_eh_frame(struct dwunw_cfi *cfi)
{
	struct dwunw_cfi_section eh, hdr;

	dwunw_go_table_open(&cfi->go, cfi->elf);
	dwunw_cfi_section_eh(cfi->elf, &eh, &hdr);
	dwunw_cfi_table_init(&cfi->eh.table, &eh, &hdr);
	cfi->opened = true;
}

static int open_debug_frame(struct dwunw_cfi *cfi)
{
	static const struct dwunw_cfi_section no_hdr;
	struct dwunw_cfi_section debug;

	if (dwunw_cfi_section_debug(cfi->elf, &debug, &cfi->debug_owned))
		return -ENOMEM;
	dwunw_cfi_table_init(&cfi->debug.table, &debug, &no_hdr);
	cfi->debug_opened = true;
	return 0;
}

/* The checkpoints for @fde.  NULL if it needs none, or without memory: that costs time. */
static struct dwunw_cfi_points *points_for(struct dwunw_cfi *cfi, const struct dwunw_fde *fde)
{
	if (fde->insns_end - fde->insns <= DWUNW_CFI_CHECKPOINT_LEN)
		return NULL;
	if (!cfi->points)
		cfi->points = calloc(1, sizeof(*cfi->points));
	return cfi->points;
}

static bool make_rules(struct dwunw_cfi *cfi, struct source *source, uint64_t addr,
		       struct dwunw_cfi_rules *rules)
{
	const struct dwunw_fde *fde = &source->fde;

	if (source->initial_of != fde->cie_at + 1) {
		source->initial_good = dwunw_cfi_rules_begin(&source->initial, fde);
		source->initial_of = fde->cie_at + 1;
	}
	/* Any other column for the return address is not of x86-64. */
	if (!source->initial_good || fde->cie.ra != DWUNW_CFI_RA)
		return false;
	return dwunw_cfi_rules_make(rules, fde, &source->initial, addr, points_for(cfi, fde));
}

/* The same as dwunw_cfi_rules_at(), of one section, whose table says @pair. */
static int find_rules(struct dwunw_cfi *cfi, struct source *source, uint64_t addr, size_t pair,
		      struct dwunw_cfi_rules *rules)
{
	int found = dwunw_cfi_table_find(&source->table, addr, pair, &source->fde);

	return found > 0 ? make_rules(cfi, source, addr, rules) : found;
}

/* The same, of .debug_frame. */
static int find_debug_rules(struct dwunw_cfi *cfi, uint64_t addr, struct dwunw_cfi_rules *rules)
{
	if (!cfi->debug_opened && open_debug_frame(cfi))
		return -ENOMEM;
	return find_rules(cfi, &cfi->debug, addr, 0, rules);
}

int dwunw_cfi_rules_at(struct dwunw_cfi *cfi, uint64_t addr, struct dwunw_cfi_rules *rules)
{
	int found;

	if (!cfi->opened)
		open_eh_frame(cfi);
	found = find_rules(cfi, &cfi->eh, addr, dwunw_cfi_table_search(&cfi->eh.table, addr),
			   rules);
	return found ? found : find_debug_rules(cfi, addr, rules);
}

static int keep_full(struct dwunw_cfi *cfi, const struct dwunw_cfi_rules *rules,
		     const struct dwunw_cfi_rules **kept)
{
	if (!cfi->fulls || cfi->nr_fulls == FULLS_IN_CHUNK) {
		struct fulls *chunk = malloc(sizeof(*chunk));

		if (!chunk)
			return -ENOMEM;
		chunk->next = cfi->fulls;
		cfi->fulls = chunk;
		cfi->nr_fulls = 0;
	}
	cfi->fulls->rules[cfi->nr_fulls] = *rules;
	*kept = &cfi->fulls->rules[cfi->nr_fulls++];
	return 0;
}

/* Fill the row after the last, for @addr, which @pair of .eh_frame_hdr belongs to. */
static int fill_row(struct dwunw_cfi *cfi, uint64_t addr, size_t pair)
{
	struct dwunw_cfi_row *row = &cfi->rows[cfi->nr_rows];
	struct dwunw_cfi_rules rules;
	int found = find_rules(cfi, &cfi->eh, addr, pair, &rules);
	const bool by_pair =
		found > 0 && dwunw_cfi_table_leads_to(&cfi->eh.table, pair, &cfi->eh.fde);

	if (!found)
		found = find_debug_rules(cfi, addr, &rules);
	*row = (struct dwunw_cfi_row){.kind = DWUNW_CFI_NONE};
	if (found <= 0)
		return found;
	pack_row(row, &rules);
	if (row->kind == DWUNW_CFI_FULL && keep_full(cfi, &rules, &row->full))
		return -ENOMEM;
	if (by_pair)
		dwunw_cfi_spans_add(&cfi->spans, pair, rules.start, rules.end, cfi->nr_rows);
	return 0;
}

/* Find the number of @addr's row, which becomes the last one if it is new. */
static int new_row(struct dwunw_cfi *cfi, uint64_t addr, uint32_t *nr)
{
	size_t pair;

	if (!cfi->opened)
		open_eh_frame(cfi);
	if (grow_array(&cfi->rows, cfi->nr_rows, &cfi->room, sizeof(*cfi->rows)))
		return -ENOMEM;
	if (!dwunw_go_row(&cfi->go, addr, &cfi->rows[cfi->nr_rows])) {
		pair = dwunw_cfi_table_search(&cfi->eh.table, addr);
		*nr = dwunw_cfi_spans_find(&cfi->spans, pair, addr);
		if (*nr != DWUNW_NOT_FOUND)
			return 0;
		if (fill_row(cfi, addr, pair))
			return -ENOMEM;
	}
	*nr = cfi->nr_rows++;
	return 0;
}

int dwunw_cfi_find(struct dwunw_cfi *cfi, uint64_t addr, const struct dwunw_cfi_row **row)
{
	uint32_t nr = dwunw_addr_index_find(&cfi->index, addr);

	if (nr == DWUNW_NOT_FOUND &&
	    (new_row(cfi, addr, &nr) || dwunw_addr_index_add(&cfi->index, addr, nr)))
		return -ENOMEM;
	*row = &cfi->rows[nr];
	return 0;
}
