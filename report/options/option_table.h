/* option_table.h - the options of `mleak report`, `mleak diff` and `mleak unwind`: their names, and
 * the help
 *
 * What they do is in options.c.
 */
#ifndef REPORT_OPTION_TABLE_H
#define REPORT_OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>

#define DEFAULT_PATH	  "mleak.mlk"
#define DEFAULT_DEBUG_DIR "/usr/lib/debug"

/* Options without a short form. */
enum {
	OPT_FORMAT = 256,
	OPT_FOLDED,
	OPT_FLAT,
	OPT_BY,
	OPT_COLOR,
	OPT_LINES,
	OPT_NO_PAGER,
	OPT_DIFF,
	OPT_GROWTH,
	OPT_TIMELINE,
	OPT_COST,
	OPT_TEMPORARY,
	OPT_THREAD,
	OPT_MODULE,
	OPT_FUNCTION,
	OPT_MIN_BYTES,
	OPT_MIN_BLOCKS,
	OPT_OLDER,
	OPT_AT,
	OPT_BETWEEN,
	OPT_SUPPRESSIONS,
	OPT_NO_EMBEDDED,
	OPT_FAIL_ON_LEAK,
	OPT_STRICT,
	OPT_MAX_MEMORY,
	OPT_INVERTED,
	OPT_INLINE,
	OPT_ADDRESSES,
	OPT_NO_DEMANGLE,
	OPT_DEBUG_DIR,
	OPT_SYMFS,
	OPT_DEBUGINFOD,
	OPT_DUMP,
	OPT_PID,
	OPT_ADDR
};

struct option_row {
	const char *name;
	int value;	 /* the letter of the short form, or one of the above */
	const char *arg; /* in [brackets]: may be left out */
	const char *help;
};

/* The row of the option with the value @value, or NULL. */
const struct option_row *option_row_of(int value);

#define OPTION_ROWS_MAX 64

/* What getopt_long() wants, made from the rows. */
struct option_tables {
	struct option longs[OPTION_ROWS_MAX + 1];
	char shorts[2 * OPTION_ROWS_MAX + 2];
};

/* Fill @tables, which is all zero before, with the options of @command: "diff", "unwind", else
 * report. */
void option_tables_make(struct option_tables *tables, const char *command);

#endif
