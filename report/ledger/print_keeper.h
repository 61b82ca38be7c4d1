/* print_keeper.h - who keeps memory, where that is no block with a stack */
#ifndef REPORT_PRINT_KEEPER_H
#define REPORT_PRINT_KEEPER_H

#include <stdio.h>

#include "report/base/json.h"
#include "report/ledger/ledger.h"
#include "report/trace/thread_names.h"

/* Print who the keeper of @row, one of @ledger, is: not KEEPER_BLOCK.  @threads have names. */
void print_keeper(FILE *out, const struct ledger *ledger, const struct ledger_row *row,
		  const struct thread_names *threads);

/* Print the end of the line: how much @row's keeper keeps, by way of what. */
void print_keeper_way(FILE *out, const struct ledger_row *row);

/* The same as print_keeper(), as a member of an object. */
void print_keeper_json(struct json *json, const struct ledger *ledger, const struct ledger_row *row,
		       const struct thread_names *threads);

#endif
