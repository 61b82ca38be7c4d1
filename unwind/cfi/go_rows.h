/* go_rows.h - rows for code of Go, by the table that Go's runtime walks by */
#ifndef DWUNW_GO_ROWS_H
#define DWUNW_GO_ROWS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi/cfi.h"
#include "unwind/golang/pclntab.h"

/* Set @table to that of @elf; it is empty where there is none. */
void dwunw_go_table_open(struct dwunw_pclntab *table, Elf *elf);

/* Set *row to the rules at @addr.  False: that is no code of Go. */
bool dwunw_go_row(const struct dwunw_pclntab *table, uint64_t addr, struct dwunw_cfi_row *row);

#endif
