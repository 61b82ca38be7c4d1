/* cfi_check.h - refuse call frame information that would take for ever to interpret */
#ifndef DWUNW_CFI_CHECK_H
#define DWUNW_CFI_CHECK_H

#include <libelf.h>
#include <stdbool.h>

/* Whether all entries of @elf's .eh_frame, that libdw may come upon, are of a sensible length. */
bool dwunw_cfi_check_eh(Elf *elf);

/* The same of .debug_frame, after dwarf_begin_elf() has uncompressed it. */
bool dwunw_cfi_check_debug(Elf *elf);

#endif
