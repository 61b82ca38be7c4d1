/* option_rows.c - which options `mleak diff`, `mleak unwind` and `mleak why` have of those in
 * option_table.c, and the help of all
 */
#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "report/options/option_table.h"
#include "report/options/options.h"

/* An option of another command.  Its help is that of the row unless it has one of its own. */
struct borrowed {
	int value; /* the key of the row */
	const char *help;
};

/* The options of `mleak diff`: those of report that are of use there. */
static const struct borrowed diff_rows[] = {
	{OPT_FORMAT, "tree (the default: text), folded, json, csv or html"},
	{OPT_FOLDED, "the same as --format=folded: each stack with what was outstanding of it "
		     "before and after"},
	{'n', "only the N stacks with the largest change"},
	{OPT_PID,
	 "only what the process PID allocated, or the first PID in BEFORE and the second in AFTER"},
	{OPT_THREAD, NULL},
	{OPT_MODULE, NULL},
	{OPT_FUNCTION, NULL},
	{OPT_STACK, NULL},
	{OPT_MIN_BYTES, NULL},
	{OPT_MIN_BLOCKS, NULL},
	{OPT_OLDER, NULL},
	{OPT_VERDICT, NULL},
	{OPT_LOST, NULL},
	{OPT_STARTS_ONLY, NULL},
	{OPT_TAG_MASK, NULL},
	{OPT_ROOT, NULL},
	{OPT_AT, "the state this long after the start: in both traces, or at the first TIME in "
		 "BEFORE and the second in AFTER"},
	{OPT_BETWEEN, NULL},
	{OPT_SUPPRESSIONS, NULL},
	{OPT_NO_EMBEDDED, NULL},
	{OPT_FULL_RECURSION, NULL},
	{OPT_INLINE, NULL},
	{OPT_OFFSETS, NULL},
	{OPT_ADDRESSES, NULL},
	{OPT_FULL_NAMES, NULL},
	{OPT_NO_DEMANGLE, NULL},
	{OPT_DEBUG_DIR, NULL},
	{OPT_SYMFS, NULL},
	{OPT_VMLINUX, NULL},
	{OPT_DEBUGINFOD, NULL},
	{OPT_FAIL_ON_LEAK, "exit with 1 when more is outstanding than before, or by more than "
			   "BYTES; with 2 when the traces cannot tell"},
	{OPT_FAIL_ON, "leak: the same as --fail-on-leak"},
	{OPT_STRICT, NULL},
	{OPT_COLOR, NULL},
	{OPT_BYTES, NULL},
	{OPT_NO_LIMIT, NULL},
	{OPT_NO_PAGER, NULL},
	{OPT_NO_CACHE, NULL},
	{'j', NULL},
	{OPT_MAX_MEMORY, NULL},
	{'q', NULL},
	{'h', NULL},
};

#define NR_DIFF_ROWS (sizeof(diff_rows) / sizeof(*diff_rows))

/* And those of `mleak unwind`. */
static const struct borrowed unwind_rows[] = {
	{'o', NULL},
	{OPT_DROP_RAW, NULL},
	{OPT_SYMFS, "look for programs and libraries that are not in the trace below DIR first"},
	{OPT_DEBUG_DIR, "look for them by their build-ids here before " DEFAULT_DEBUG_DIR
			"; may be given several times"},
	{'j', "read the trace with N threads [one for each CPU]"},
	{OPT_MAX_MEMORY, NULL},
	{'q', "print only what went wrong"},
	{'h', NULL},
};

#define NR_UNWIND_ROWS (sizeof(unwind_rows) / sizeof(*unwind_rows))

/* And those of `mleak why`. */
static const struct borrowed why_rows[] = {
	{OPT_FORMAT, "tree (the default: text) or json"},
	{OPT_FULL, NULL},
	{'n', "only the N first rows, and below each root the N first stacks"},
	{OPT_PID, "only of the process PID, of several in a trace"},
	{OPT_AT, "by the last snapshot that ended this long after the start of the recording; "
		 "seconds, or with a unit; or at a mark: mark:1, mark:TEXT"},
	{OPT_STARTS_ONLY, NULL},
	{OPT_TAG_MASK, NULL},
	{OPT_ROOT, NULL},
	{OPT_INLINE, NULL},
	{OPT_ADDRESSES, NULL},
	{OPT_FULL_NAMES, NULL},
	{OPT_NO_DEMANGLE, NULL},
	{OPT_DEBUG_DIR, NULL},
	{OPT_SYMFS, NULL},
	{OPT_DEBUGINFOD, NULL},
	{OPT_BYTES, NULL},
	{OPT_NO_PAGER, NULL},
	{OPT_NO_CACHE, NULL},
	{'j', NULL},
	{OPT_MAX_MEMORY, NULL},
	{'q', NULL},
	{'h', NULL},
};

#define NR_WHY_ROWS (sizeof(why_rows) / sizeof(*why_rows))

#define DIFF_FORMATS "tree folded json csv html"
#define WHY_FORMATS  "tree json"

static void fill_borrowed(const struct borrowed *row, struct option_info *option)
{
	*option = *option_row_of(row->value);
	if (row->help)
		option->help = row->help;
}

bool unwind_option(size_t i, struct option_info *option)
{
	if (i >= NR_UNWIND_ROWS)
		return false;
	fill_borrowed(&unwind_rows[i], option);
	option->group = NULL;
	return true;
}

bool diff_option(size_t i, struct option_info *option)
{
	if (i >= NR_DIFF_ROWS)
		return false;
	fill_borrowed(&diff_rows[i], option);
	if (diff_rows[i].value == OPT_FORMAT)
		option->values = DIFF_FORMATS;
	if (diff_rows[i].value == OPT_PID)
		option->arg = "PID[,PID]";
	if (diff_rows[i].value == OPT_FAIL_ON)
		option->values = "leak";
	if (diff_rows[i].value == OPT_AT)
		option->arg = "TIME[,TIME]";
	return true;
}

bool why_option(size_t i, struct option_info *option)
{
	if (i >= NR_WHY_ROWS)
		return false;
	fill_borrowed(&why_rows[i], option);
	option->group = NULL;
	if (why_rows[i].value == OPT_FORMAT)
		option->values = WHY_FORMATS;
	return true;
}

option_rows *option_rows_of(const char *command)
{
	if (!strcmp(command, "diff"))
		return diff_option;
	if (!strcmp(command, "why"))
		return why_option;
	return strcmp(command, "unwind") ? report_option : unwind_option;
}

void report_opts_print_help(const char *command)
{
	if (!strcmp(command, "diff"))
		puts("usage: mleak diff [OPTIONS] BEFORE AFTER\n"
		     "       mleak diff [OPTIONS] --at A,B FILE\n\n"
		     "Compares what is outstanding at the end of the traces BEFORE and AFTER, or "
		     "at two\n"
		     "moments of one trace: stacks that are new, grown, shrunk or gone.\n");
	else if (!strcmp(command, "why"))
		puts("usage: mleak why [OPTIONS] [ADDRESS|STACK] [FILE]\n\n"
		     "Shows who holds memory, by the pointers that 'mleak record --reach' has put "
		     "into the\n"
		     "trace in FILE (default: " DEFAULT_PATH "): of each variable, stack and "
		     "mapping what only it\n"
		     "holds; or the way to the block at ADDRESS (0x...); or to the blocks of "
		     "STACK: the id\n"
		     "of one, or a regular expression for functions in it.\n");
	else if (!strcmp(command, "unwind"))
		puts("usage: mleak unwind [OPTIONS] [FILE]\n\n"
		     "Unwinds all stacks of the trace in FILE (default: " DEFAULT_PATH
		     ") and stores them there, so\nthat each report of it takes a fraction of the "
		     "time.\n");
	else
		puts("usage: mleak report [OPTIONS] [FILE]\n\n"
		     "Shows which call paths allocated the blocks that were never freed, from the "
		     "trace\n"
		     "in FILE (default: " DEFAULT_PATH ").\n");
	print_options(option_rows_of(command));
}
