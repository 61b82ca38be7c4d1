/* cfi_table.h - find the FDE for an address */
#ifndef DWUNW_CFI_TABLE_H
#define DWUNW_CFI_TABLE_H

#include "unwind/cfi/cfi_entry.h"

/* An FDE in an index of our own. */
struct dwunw_fde_place {
	uint64_t start; /* address */
	uint64_t at;	/* in the section */
};

/* A section of call frame information with what helps to search it.  Zeroes: an empty one. */
struct dwunw_cfi_table {
	struct dwunw_cfi_section section;
	/* The table in .eh_frame_hdr: pairs of an address and that of its FDE. */
	const uint8_t *pairs;
	size_t nr_pairs, number_size;
	uint8_t encoding;
	uint64_t base;	     /* added to the numbers */
	uint64_t pairs_addr; /* address of the first one, if they count from their own place */
	bool checked, sound; /* the table was examined as a whole; it names every FDE, in order */
	/* Made when the table is missing or not sound, and does not lead to an FDE that covers the
	 * address. */
	struct dwunw_fde_place *index;
	size_t nr_index;
	bool indexed;
};

/* For @section and the table in @hdr, which may be empty; the bytes of both are borrowed. */
void dwunw_cfi_table_init(struct dwunw_cfi_table *table, const struct dwunw_cfi_section *section,
			  const struct dwunw_cfi_section *hdr);

/* Free the index, and make an empty one. */
void dwunw_cfi_table_release(struct dwunw_cfi_table *table);

/* The pair that @addr belongs to, by a search in the table alone: its number plus one; or 0. */
size_t dwunw_cfi_table_search(const struct dwunw_cfi_table *table, uint64_t addr);

/* Find the FDE that covers @addr, of which dwunw_cfi_table_search() says @pair.  *fde is as for
 * dwunw_fde_read().  Returns 1, 0 when there is none, or -ENOMEM. */
int dwunw_cfi_table_find(struct dwunw_cfi_table *table, uint64_t addr, size_t pair,
			 struct dwunw_fde *fde);

/* Whether @pair, as above, leads to @fde.  Then it is found for all addresses that belong to the
 * pair and that it covers. */
bool dwunw_cfi_table_leads_to(const struct dwunw_cfi_table *table, size_t pair,
			      const struct dwunw_fde *fde);

#endif
