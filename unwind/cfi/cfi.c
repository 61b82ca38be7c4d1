/* cfi.c - rows of call frame information, cached by address */
#include "unwind/cfi/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include "unwind/cfi/cfi_pack.h"
#include "unwind/cfi/cfi_section.h"
#include "unwind/cfi/cfi_table.h"
#include "unwind/elf/addr_index.h"

#define MAX_CHECKPOINTS 256
#define FULLS_IN_CHUNK	16

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
	bool opened, debug_opened;	     /* the sections were looked for */
	struct source eh, debug;	     /* debug is asked only when eh does not know */
	void *debug_owned;		     /* the uncompressed section, or NULL */
	struct dwunw_cfi_checkpoint *points; /* of long FDEs */
	size_t nr_points;
	struct dwunw_addr_index index;
	struct dwunw_cfi_row *rows;
	uint32_t nr_rows, room;
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
	dwunw_cfi_table_release(&cfi->eh.table);
	dwunw_cfi_table_release(&cfi->debug.table);
	free(cfi->debug_owned);
	free(cfi);
}

static void open_eh_frame(struct dwunw_cfi *cfi)
{
	struct dwunw_cfi_section eh, hdr;

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

/* Choose the last checkpoint of @fde that is not after @addr. */
static void choose_point(const struct dwunw_cfi *cfi, const struct dwunw_fde *fde, uint64_t addr,
			 struct dwunw_cfi_checkpoint *point)
{
	const struct dwunw_cfi_checkpoint *best = NULL;

	for (size_t i = 0; i < cfi->nr_points; i++) {
		const struct dwunw_cfi_checkpoint *p = &cfi->points[i];

		if (p->entry == fde->entry && p->rules.start <= addr &&
		    (!best || best->work < p->work))
			best = p;
	}
	if (best)
		*point = *best;
}

/* Keep @point for later, if there is room: one that is not kept costs time, nothing else. */
static void keep_point(struct dwunw_cfi *cfi, const struct dwunw_cfi_checkpoint *point)
{
	if (!cfi->points)
		cfi->points = calloc(MAX_CHECKPOINTS, sizeof(*cfi->points));
	if (cfi->points && cfi->nr_points < MAX_CHECKPOINTS)
		cfi->points[cfi->nr_points++] = *point;
}

static bool make_rules(struct dwunw_cfi *cfi, struct source *source, uint64_t addr,
		       struct dwunw_cfi_rules *rules)
{
	const struct dwunw_fde *fde = &source->fde;
	struct dwunw_cfi_checkpoint point;
	const uint8_t *before;
	bool good;

	if (source->initial_of != fde->cie_at + 1) {
		source->initial_good = dwunw_cfi_rules_begin(&source->initial, fde);
		source->initial_of = fde->cie_at + 1;
	}
	/* Any other column for the return address is not of x86-64. */
	if (!source->initial_good || fde->cie.ra != DWUNW_CFI_RA)
		return false;
	point.entry = before = NULL;
	if (fde->insns_end - fde->insns <= DWUNW_CFI_CHECKPOINT_WORK)
		return dwunw_cfi_rules_make(rules, fde, &source->initial, addr, &point);
	choose_point(cfi, fde, addr, &point);
	before = point.entry ? point.at : NULL;
	good = dwunw_cfi_rules_make(rules, fde, &source->initial, addr, &point);
	if (point.entry && point.at != before)
		keep_point(cfi, &point);
	return good;
}

int dwunw_cfi_rules_at(struct dwunw_cfi *cfi, uint64_t addr, struct dwunw_cfi_rules *rules)
{
	int found;

	if (!cfi->opened)
		open_eh_frame(cfi);
	found = dwunw_cfi_table_find(&cfi->eh.table, addr, &cfi->eh.fde);
	if (found < 0)
		return found;
	if (found && make_rules(cfi, &cfi->eh, addr, rules))
		return 1;
	if (!cfi->debug_opened && open_debug_frame(cfi))
		return -ENOMEM;
	found = dwunw_cfi_table_find(&cfi->debug.table, addr, &cfi->debug.fde);
	if (found < 0)
		return found;
	return found && make_rules(cfi, &cfi->debug, addr, rules);
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

static int fill_row(struct dwunw_cfi *cfi, struct dwunw_cfi_row *row, uint64_t addr)
{
	struct dwunw_cfi_rules rules;
	int found = dwunw_cfi_rules_at(cfi, addr, &rules);

	*row = (struct dwunw_cfi_row){.kind = DWUNW_CFI_NONE};
	if (found <= 0)
		return found;
	dwunw_cfi_pack(row, &rules);
	return row->kind == DWUNW_CFI_FULL ? keep_full(cfi, &rules, &row->full) : 0;
}

static int make_room(struct dwunw_cfi *cfi)
{
	uint32_t room = cfi->room ? 2 * cfi->room : 64;
	struct dwunw_cfi_row *rows;

	if (cfi->nr_rows < cfi->room)
		return 0;
	rows = room > cfi->room ? reallocarray(cfi->rows, room, sizeof(*rows)) : NULL;
	if (!rows)
		return -ENOMEM;
	cfi->rows = rows;
	cfi->room = room;
	return 0;
}

static int add_row(struct dwunw_cfi *cfi, uint64_t addr)
{
	if (make_room(cfi) || fill_row(cfi, &cfi->rows[cfi->nr_rows], addr) ||
	    dwunw_addr_index_add(&cfi->index, addr, cfi->nr_rows))
		return -ENOMEM;
	cfi->nr_rows++;
	return 0;
}

int dwunw_cfi_find(struct dwunw_cfi *cfi, uint64_t addr, const struct dwunw_cfi_row **row)
{
	uint32_t nr = dwunw_addr_index_find(&cfi->index, addr);

	if (nr == DWUNW_NOT_FOUND) {
		if (add_row(cfi, addr))
			return -ENOMEM;
		nr = cfi->nr_rows - 1;
	}
	*row = &cfi->rows[nr];
	return 0;
}
