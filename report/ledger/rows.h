/* rows.h - the rows of a ledger, as they are made */
#ifndef REPORT_ROWS_H
#define REPORT_ROWS_H

#include "report/ledger/ledger.h"

/* Add a row of a @stack, or a @path, unless @bytes are 0.  Returns 0 or -ENOMEM. */
int ledger_add_row(struct ledger *ledger, enum ledger_kind kind, uint32_t stack, const char *path,
		   uint64_t bytes);

/* Count @holes, and add a row for each keeper of any.  They have another order then.  Returns 0 or
 * -ENOMEM. */
int ledger_add_holes(struct ledger *ledger, struct holes *holes);

/* All rows are there: sort them. */
void ledger_sort_rows(struct ledger *ledger);

#endif
