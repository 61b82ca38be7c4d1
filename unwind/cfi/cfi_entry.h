/* cfi_entry.h - the entries of .eh_frame and .debug_frame: CIEs and FDEs */
#ifndef DWUNW_CFI_ENTRY_H
#define DWUNW_CFI_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi/cfi_bytes.h"

/* A section of call frame information, in memory.  Zeroes: there is none. */
struct dwunw_cfi_section {
	const uint8_t *bytes;
	size_t len;
	uint64_t addr; /* of its first byte, as the file counts; nothing in .debug_frame needs it */
	bool eh;       /* .eh_frame's form, not that of .debug_frame */
	bool open_ended; /* where it ends is not known: not after a terminator */
};

/* What the FDEs of a CIE have in common. */
struct dwunw_cie {
	const uint8_t *insns, *insns_end;
	uint64_t code_align, data_align;
	uint64_t ra;	  /* register that represents the return address */
	uint8_t encoding; /* DW_EH_PE_* of the FDEs' addresses */
	uint8_t addr_size;
	bool sized;   /* the FDEs' augmentation data begin with their length */
	bool signal;  /* for trampolines of signal handlers */
	bool wide_id; /* its id, and its FDEs' pointers to it, have 8 bytes */
};

/* What is said of some code. */
struct dwunw_fde {
	const struct dwunw_cfi_section *section; /* of the CIE; NULL: it was not read */
	uint64_t cie_at;			 /* in the section */
	const uint8_t *entry; /* the FDE, which distinguishes it from all others */
	struct dwunw_cie cie;
	const uint8_t *insns, *insns_end;
	uint64_t start, end; /* addresses it covers */
};

/* What is found at a place of a section. */
enum dwunw_entry_kind {
	DWUNW_ENTRY_END, /* no more of them can be found from here on */
	DWUNW_ENTRY_TERMINATOR,
	DWUNW_ENTRY_CIE,
	DWUNW_ENTRY_FDE,
	DWUNW_ENTRY_OTHER, /* one that makes no sense */
};

/* Say what entry is at @at, and where the next one is; by its head, nothing else of it is read. */
enum dwunw_entry_kind dwunw_entry_head(const struct dwunw_cfi_section *section, uint64_t at,
				       uint64_t *next);

/* Read the FDE at @at with its CIE.  *fde is zeroes or what an earlier call left there, whose CIE
 * is not read again if it is the same.  Returns false when there is none, or it makes no sense. */
bool dwunw_fde_read(struct dwunw_fde *fde, const struct dwunw_cfi_section *section, uint64_t at);

/* The address that is encoded at @b->at in the form that @fde's CIE names. */
uint64_t dwunw_fde_address(const struct dwunw_fde *fde, struct dwunw_bytes *b);

#endif
