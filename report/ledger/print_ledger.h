/* print_ledger.h - where the resident memory of each process is: --resident */
#ifndef REPORT_PRINT_LEDGER_H
#define REPORT_PRINT_LEDGER_H

#include <stdio.h>

#include "format/trace.h"
#include "report/ledger/residence.h"
#include "report/replay/replay.h"
#include "report/view/view.h"

struct ledgers; /* opaque: those of some processes */

/* All of it is borrowed. */
struct ledgers_source {
	const char *path; /* of the trace */
	const struct mlk_meta *meta;
	const struct replay *leaks; /* at the moment of the residences */
	const struct residences *residences;
	struct mlk_reader *trace; /* to find what points to memory; nobody else reads it */
	uint32_t pid;		  /* of the process that is requested; 0: all */
	size_t top; /* so many stacks and files of each kind; 0: a few for people, all for JSON */
};

/* Make them, and name the stacks as @names and @opts say.  @source must outlive *@out, which is
 * NULL on failure.  Returns 0, -ENOMEM or -errno of read(2). */
int ledgers_new(struct ledgers **out, const struct ledgers_source *source,
		const struct symbols_source *names, const struct view_opts *opts);

/* Is there one? */
bool ledgers_any(const struct ledgers *ledgers);

/* Print them.  Errors are left in @out for ferror().  Returns 0 or -ENOMEM. */
int print_ledgers(FILE *out, const struct ledgers *ledgers);

/* As JSON, with the schema of doc/report-json.md. */
void print_ledgers_json(FILE *out, const struct ledgers *ledgers);

/* Release @ledgers; NULL is allowed. */
void ledgers_free(struct ledgers *ledgers);

#endif
