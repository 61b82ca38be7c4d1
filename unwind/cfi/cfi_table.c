/* cfi_table.c - see cfi_table.h */
#include "unwind/cfi/cfi_table.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

#define USUAL (DW_EH_PE_datarel | DW_EH_PE_sdata4)

/* FDEs that may lie within another one, before that is not found any more from behind them. */
#define MAX_INNER 32

/* The @nr-th number of the table: 2 i is an address, 2 i + 1 that of its FDE. */
static inline uint64_t number(const struct dwunw_cfi_table *t, size_t nr)
{
	const uint8_t *at = t->pairs + nr * t->number_size;
	uint64_t value = 0;
	int32_t usual;

	if (t->encoding == USUAL) {
		memcpy(&usual, at, sizeof(usual));
		return t->base + (uint64_t)(int64_t)usual;
	}
	memcpy(&value, at, t->number_size);
	if (t->encoding & DW_EH_PE_signed)
		value = dwunw_sign_extend(value, t->number_size);
	if ((t->encoding & 0x70) == DW_EH_PE_pcrel)
		value += t->pairs_addr + nr * t->number_size;
	return t->base + value;
}

/* A table in a form that cannot be searched, or beyond the end of its section, is left alone. */
static void find_pairs(struct dwunw_cfi_table *t, const struct dwunw_cfi_section *hdr)
{
	struct dwunw_bytes in = {hdr->bytes, hdr->bytes + hdr->len, false};
	uint8_t version = (uint8_t)dwunw_bytes_u(&in, 1), pointer = (uint8_t)dwunw_bytes_u(&in, 1);
	uint8_t count = (uint8_t)dwunw_bytes_u(&in, 1), form = (uint8_t)dwunw_bytes_u(&in, 1);
	uint8_t from = form & 0xf0;
	size_t size = dwunw_encoded_size(form);
	uint64_t nr;

	if (pointer != DW_EH_PE_omit)
		dwunw_bytes_encoded(&in, pointer);
	nr = dwunw_bytes_encoded(&in, count);
	if (in.bad || version != 1 || form == DW_EH_PE_omit || !size ||
	    (from && from != DW_EH_PE_datarel && from != DW_EH_PE_pcrel) ||
	    nr > dwunw_bytes_left(&in) / (2 * size))
		return;
	t->pairs = in.at;
	t->nr_pairs = nr;
	t->number_size = size;
	t->encoding = form;
	t->base = from == DW_EH_PE_datarel ? hdr->addr : 0;
	t->pairs_addr = hdr->addr + (uint64_t)(in.at - hdr->bytes);
}

void dwunw_cfi_table_init(struct dwunw_cfi_table *table, const struct dwunw_cfi_section *section,
			  const struct dwunw_cfi_section *hdr)
{
	*table = (struct dwunw_cfi_table){.section = *section};
	if (section->len && hdr->len)
		find_pairs(table, hdr);
}

void dwunw_cfi_table_release(struct dwunw_cfi_table *table)
{
	free(table->index);
	*table = (struct dwunw_cfi_table){0};
}

static bool covers(struct dwunw_cfi_table *t, uint64_t at, uint64_t addr, struct dwunw_fde *fde)
{
	return dwunw_fde_read(fde, &t->section, at) && fde->start <= addr && addr < fde->end;
}

/* Search a table of the usual form.  Without a branch on what is compared, which would be predicted
 * wrong every other time; what may be compared next is fetched meanwhile. */
static size_t search_usual(const struct dwunw_cfi_table *t, uint64_t addr)
{
	const uint8_t *first = t->pairs;
	int32_t at;

	for (size_t nr = t->nr_pairs, half; nr > 1; nr -= half) {
		const size_t next = (nr - nr / 2) / 2;

		half = nr / 2;
		__builtin_prefetch(first + 8 * next);
		__builtin_prefetch(first + 8 * (half + next));
		memcpy(&at, first + 8 * half, sizeof(at));
		first += 8 * half & -(size_t)(t->base + (uint64_t)(int64_t)at <= addr);
	}
	return (size_t)(first - t->pairs) / 8;
}

size_t dwunw_cfi_table_search(const struct dwunw_cfi_table *table, uint64_t addr)
{
	size_t low = 0;

	if (!table->nr_pairs)
		return 0;
	if (table->encoding == USUAL) {
		low = search_usual(table, addr);
	} else {
		for (size_t nr = table->nr_pairs, half; nr > 1; nr -= half) {
			half = nr / 2;
			if (number(table, 2 * (low + half)) <= addr)
				low += half;
		}
	}
	return number(table, 2 * low) <= addr ? low + 1 : 0;
}

/* Where in the section the FDE of @pair is; beyond its end if it is none of it. */
static uint64_t place_of(const struct dwunw_cfi_table *t, size_t pair)
{
	return number(t, 2 * pair - 1) - t->section.addr;
}

bool dwunw_cfi_table_leads_to(const struct dwunw_cfi_table *table, size_t pair,
			      const struct dwunw_fde *fde)
{
	return pair && table->section.bytes &&
	       place_of(table, pair) == (uint64_t)(fde->entry - table->section.bytes);
}

/* Read the FDE of @pair.  False: it is none, or does not cover @addr; then *is_gap is set if it is
 * what its address says, and ends before. */
static bool find_by_pair(struct dwunw_cfi_table *t, uint64_t addr, size_t pair,
			 struct dwunw_fde *fde, bool *is_gap)
{
	uint64_t at;

	*is_gap = t->nr_pairs && !pair;
	if (!pair)
		return false;
	at = place_of(t, pair);
	if (covers(t, at, addr, fde))
		return true;
	*is_gap = at < t->section.len && fde->section && fde->entry == t->section.bytes + at &&
		  fde->start == number(t, 2 * pair - 2) && fde->end <= addr;
	return false;
}

/* Whether the table is in order, and has as many pairs as there are FDEs.  Takes a small part of
 * the time that an index of our own would, which large libraries are thus spared. */
static bool is_sound(const struct dwunw_cfi_table *t)
{
	enum dwunw_entry_kind kind;
	size_t nr_fdes = 0;

	for (size_t i = 1; i < t->nr_pairs; i++)
		if (number(t, 2 * i) < number(t, 2 * i - 2))
			return false;
	for (uint64_t at = 0, next; (kind = dwunw_entry_head(&t->section, at, &next)); at = next)
		nr_fdes += kind == DWUNW_ENTRY_FDE;
	return t->nr_pairs && nr_fdes == t->nr_pairs;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct dwunw_fde_place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int add_place(struct dwunw_cfi_table *t, size_t *room, uint64_t start, uint64_t at)
{
	if (grow_array(&t->index, t->nr_index, room, sizeof(*t->index)))
		return -ENOMEM;
	t->index[t->nr_index++] = (struct dwunw_fde_place){start, at};
	return 0;
}

/* Linkers set the addresses of functions they leave out to 0, in .debug_frame. */
static bool is_of_code(const struct dwunw_cfi_table *t, const struct dwunw_fde *fde)
{
	return fde->end > fde->start && (t->section.eh || fde->start);
}

/* Go through the whole section.  A terminator is not its end: objects bring their own along. */
static int make_index(struct dwunw_cfi_table *t)
{
	struct dwunw_fde fde = {0};
	enum dwunw_entry_kind kind;
	size_t room = 0;
	bool sorted = true;

	for (uint64_t at = 0, next; (kind = dwunw_entry_head(&t->section, at, &next)); at = next) {
		if (kind != DWUNW_ENTRY_FDE || !dwunw_fde_read(&fde, &t->section, at) ||
		    !is_of_code(t, &fde))
			continue;
		if (add_place(t, &room, fde.start, at))
			return -ENOMEM;
		sorted &= t->nr_index == 1 || t->index[t->nr_index - 2].start <= fde.start;
	}
	if (!sorted)
		qsort(t->index, t->nr_index, sizeof(*t->index), compare_fdes);
	t->indexed = true;
	return 0;
}

static bool find_by_index(struct dwunw_cfi_table *t, uint64_t addr, struct dwunw_fde *fde)
{
	size_t low = 0, high = t->nr_index;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->index[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* The last that begins at or before @addr, or one around that. */
	for (size_t i = 0; i < MAX_INNER && low; i++)
		if (covers(t, t->index[--low].at, addr, fde))
			return true;
	return false;
}

int dwunw_cfi_table_find(struct dwunw_cfi_table *table, uint64_t addr, size_t pair,
			 struct dwunw_fde *fde)
{
	bool is_gap;

	if (!table->section.len)
		return 0;
	if (find_by_pair(table, addr, pair, fde, &is_gap))
		return 1;
	if (!table->checked) {
		table->sound = is_sound(table);
		table->checked = true;
	}
	if (table->sound && is_gap)
		return 0;
	if (!table->indexed) {
		table->nr_index = 0;
		if (make_index(table)) {
			free(table->index);
			table->index = NULL;
			return -ENOMEM;
		}
	}
	return find_by_index(table, addr, fde);
}
