/* cfi_section.h - find call frame information in an ELF file */
#ifndef DWUNW_CFI_SECTION_H
#define DWUNW_CFI_SECTION_H

#include <libelf.h>

#include "unwind/cfi/cfi_entry.h"

/*
 * Find .eh_frame and .eh_frame_hdr of @elf: by their section headers if it has any, else by the
 * program header PT_GNU_EH_FRAME.  (The program headers of a reduced image say where things were in
 * the whole file.)  What is not there is left zero; the bytes belong to @elf.
 */
void dwunw_cfi_section_eh(Elf *elf, struct dwunw_cfi_section *eh, struct dwunw_cfi_section *hdr);

/*
 * Find .debug_frame or .zdebug_frame of @elf, and uncompress it if need be.  @debug is left zero
 * when there is none, or it cannot be uncompressed.  *owned is to be freed after use, or NULL.
 * Returns 0 or -ENOMEM.
 */
int dwunw_cfi_section_debug(Elf *elf, struct dwunw_cfi_section *debug, void **owned);

#endif
