/* option_table.h - the options of `mleak report`, `mleak diff`, `mleak unwind` and `mleak why`:
 * their names, and the help
 *
 * What they do is in option_apply.c.
 */
#ifndef REPORT_OPTION_TABLE_H
#define REPORT_OPTION_TABLE_H

#include "cmdline/options.h"

/* The trace that is read, and where debug information is looked for, without being told. */
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
	OPT_NO_CACHE,
	OPT_NO_PAGER,
	OPT_BYTES,
	OPT_NO_LIMIT,
	OPT_DIFF,
	OPT_GROWTH,
	OPT_TIMELINE,
	OPT_COST,
	OPT_TEMPORARY,
	OPT_THREAD,
	OPT_MODULE,
	OPT_FUNCTION,
	OPT_STACK,
	OPT_MIN_BYTES,
	OPT_MIN_BLOCKS,
	OPT_OLDER,
	OPT_VERDICT,
	OPT_LOST,
	OPT_STARTS_ONLY,
	OPT_TAG_MASK,
	OPT_ROOT,
	OPT_FULL,
	OPT_AT,
	OPT_BETWEEN,
	OPT_SUPPRESSIONS,
	OPT_NO_EMBEDDED,
	OPT_FAIL_ON_LEAK,
	OPT_FAIL_ON,
	OPT_STRICT,
	OPT_MAX_MEMORY,
	OPT_INVERTED,
	OPT_FULL_RECURSION,
	OPT_PER_PROCESS,
	OPT_INLINE,
	OPT_ADDRESSES,
	OPT_OFFSETS,
	OPT_NO_DEMANGLE,
	OPT_FULL_NAMES,
	OPT_DEBUG_DIR,
	OPT_SYMFS,
	OPT_DEBUGINFOD,
	OPT_VMLINUX,
	OPT_DUMP,
	OPT_DROP_RAW,
	OPT_PID,
	OPT_AROUND,
	OPT_RESIDENT,
	OPT_ADDR
};

/* Report's row of the option with the key @key, which there is. */
const struct option_info *option_row_of(int key);

/* The rows of @command: "diff", "unwind", "why", else report. */
option_rows *option_rows_of(const char *command);

#endif
