/* option_table.c - see option_table.h */
#include "report/options/option_table.h"

#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "report/options/options.h"

static const struct option_row rows[] = {
	{"format", OPT_FORMAT, "FORMAT",
	 "tree (the default), flat, folded, json, csv, pprof, heaptrack, speedscope or html"},
	{"folded", OPT_FOLDED, NULL, "the same as --format=folded"},
	{"flat", OPT_FLAT, NULL, "the same as --format=flat: one stack after the other"},
	{"top", 'n', "N",
	 "only the N stacks with most outstanding bytes; of --growth those that grew most, of --by "
	 "the first rows"},
	{"inverted", OPT_INVERTED, NULL, "begin at the function that allocated"},
	{"by", OPT_BY, "KEY",
	 "in place of stacks, a table by thread, module, size, function, file or age; with "
	 "--format=csv or json, too"},
	{"growth", OPT_GROWTH, NULL,
	 "is it a leak? How each stack grew, its blocks that were freed, and how long they lived; "
	 "with --format=csv or json, too"},
	{"timeline", OPT_TIMELINE, NULL,
	 "what was outstanding over time, the most in each interval; with "
	 "--format=csv or json, too"},
	{"diff", OPT_DIFF, "BEFORE",
	 "what is outstanding more, or less, than in the trace BEFORE; with --folded, "
	 "--format=csv, json or html, too"},
	{"cost", OPT_COST, "COST",
	 "what --folded counts, and what --format=json and csv sort by: outstanding (the default), "
	 "allocated or peak bytes, or temporary blocks; with any but the first also stacks of "
	 "which "
	 "nothing is left"},
	{"temporary", OPT_TEMPORARY, "MS",
	 "blocks that lived no longer than so many milliseconds count as temporary, too; for "
	 "--cost temporary, "
	 "json and csv"},
	{"addr", OPT_ADDR, "ADDR",
	 "in place of a report, whose memory this is: the block that holds it, or held it last, "
	 "and "
	 "those around; with --format=json, too"},
	{"dump", OPT_DUMP, "[=full]",
	 "print all records of the trace in place of a report; full, or given twice: and all "
	 "stacks"},

	{"pid", OPT_PID, "PID",
	 "only what the process PID allocated, of several in a trace; with --diff, PID,PID names "
	 "one in each trace"},
	{"thread", OPT_THREAD, "TID|NAME",
	 "only blocks that this thread got; NAME may have * and ?"},
	{"module", OPT_MODULE, "NAME",
	 "only stacks through this program or library; NAME may have * and ?"},
	{"function", OPT_FUNCTION, "REGEX", "only stacks through such a function"},
	{"min-bytes", OPT_MIN_BYTES, "BYTES",
	 "only stacks with so much outstanding; K, M, G may follow"},
	{"min-blocks", OPT_MIN_BLOCKS, "N", "only stacks with so many blocks outstanding"},
	{"older", OPT_OLDER, "AGE",
	 "only blocks so old at the end: seconds, or with a unit as in 500ms, 10s, 5m, 1h, 1d"},
	{"at", OPT_AT, "TIME",
	 "as it was so long after the start of the recording: seconds, or with a unit"},
	{"between", OPT_BETWEEN, "A,B",
	 "what was given out after A and was still outstanding at B"},
	{"suppressions", OPT_SUPPRESSIONS, "FILE",
	 "leave out what matches a line leak:PATTERN of FILE, as LeakSanitizer does"},
	{"no-embedded-suppressions", OPT_NO_EMBEDDED, NULL,
	 "show what a recorded program's own __lsan_default_suppressions() would leave out"},

	{"inline", OPT_INLINE, NULL, "show functions that the compiler inlined, too"},
	{"addresses", OPT_ADDRESSES, NULL, "MODULE+0xADDR in place of names"},
	{"no-demangle", OPT_NO_DEMANGLE, NULL, "names of C++ and Rust as the files have them"},
	{"debug-dir", OPT_DEBUG_DIR, "DIR",
	 "look for debug information here before " DEFAULT_DEBUG_DIR "; may be given several "
	 "times"},
	{"symfs", OPT_SYMFS, "DIR",
	 "look for programs, libraries and debug files below DIR first, as below the root of the "
	 "recorded system"},
	{"debuginfod", OPT_DEBUGINFOD, NULL,
	 "fetch debug information that is not here from DEBUGINFOD_URLS; without this option the "
	 "network is never used"},

	{"fail-on-leak", OPT_FAIL_ON_LEAK, "[=BYTES]",
	 "exit with 1 when a byte is shown, or more than BYTES, or a block was overrun; of a "
	 "difference, when stacks are new or have grown, or by more than BYTES in all; with 2 "
	 "when the trace does not tell"},
	{"strict", OPT_STRICT, NULL, "exit with 2 when there was a warning"},
	{"color", OPT_COLOR, "WHEN",
	 "auto (on a terminal, unless NO_COLOR is set), always or never"},
	{"lines", OPT_LINES, "KIND",
	 "of a tree: auto (utf-8 on a terminal whose locale has it), utf-8 or ascii"},
	{"no-pager", OPT_NO_PAGER, NULL, "show the report on a terminal at once"},
	{"jobs", 'j', "N",
	 "read the trace with N threads [one for each CPU]; what is shown is the same"},
	{"max-memory", OPT_MAX_MEMORY, "BYTES",
	 "give up when it takes more memory [half of the machine's]; K, M, G may follow"},
	{"quiet", 'q', NULL, "do not show on a terminal how far it is"},
	{"help", 'h', NULL, "print this help"},

	/* of unwind alone */
	{"output", 'o', "FILE",
	 "write the trace with its stacks to FILE; one that is there is kept as FILE.old [in place "
	 "of the trace]"},
};

#define NR_ROWS	       (sizeof(rows) / sizeof(*rows))
#define NR_REPORT_ROWS (NR_ROWS - 1)

/* An option of another command.  Its help is that of the row unless it has one of its own. */
struct borrowed {
	int value; /* of the row */
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
	{OPT_MIN_BYTES, NULL},
	{OPT_MIN_BLOCKS, NULL},
	{OPT_OLDER, NULL},
	{OPT_AT, NULL},
	{OPT_BETWEEN, NULL},
	{OPT_SUPPRESSIONS, NULL},
	{OPT_NO_EMBEDDED, NULL},
	{OPT_INLINE, NULL},
	{OPT_ADDRESSES, NULL},
	{OPT_NO_DEMANGLE, NULL},
	{OPT_DEBUG_DIR, NULL},
	{OPT_SYMFS, NULL},
	{OPT_DEBUGINFOD, NULL},
	{OPT_FAIL_ON_LEAK,
	 "exit with 1 when more is outstanding than before, or by more than BYTES; with 2 when the "
	 "traces do not tell"},
	{OPT_STRICT, NULL},
	{OPT_COLOR, NULL},
	{OPT_NO_PAGER, NULL},
	{'j', NULL},
	{OPT_MAX_MEMORY, NULL},
	{'q', NULL},
	{'h', NULL},
};

#define NR_DIFF_ROWS (sizeof(diff_rows) / sizeof(*diff_rows))

/* And those of `mleak unwind`. */
static const struct borrowed unwind_rows[] = {
	{'o', NULL},
	{OPT_SYMFS, "look for programs and libraries that are not in the trace below DIR first"},
	{OPT_DEBUG_DIR, "look for them by their build-ids here before " DEFAULT_DEBUG_DIR
			"; may be given several times"},
	{'j', "read the trace with N threads [one for each CPU]"},
	{OPT_MAX_MEMORY, NULL},
	{'q', "say nothing but what went wrong"},
	{'h', NULL},
};

#define NR_UNWIND_ROWS (sizeof(unwind_rows) / sizeof(*unwind_rows))

#define DIFF_FORMATS "tree folded json csv html"

/* Of options that take one of few values: all of them. */
static const struct {
	int value; /* of the row */
	const char *values;
} choices[] = {
	{OPT_FORMAT, "tree flat folded json csv pprof heaptrack speedscope html"},
	{OPT_BY, "thread module size function file age"},
	{OPT_COST, "outstanding allocated peak temporary"},
	{OPT_COLOR, "auto always never"},
	{OPT_LINES, "auto utf-8 ascii"},
	{OPT_DUMP, "full"},
};

/* Of the options that begin a group of the help: its heading. */
static const struct {
	int value; /* of the row */
	const char *heading;
} groups[] = {
	{OPT_FORMAT, "What is shown"},
	{OPT_PID, "Of which blocks and stacks"},
	{OPT_INLINE, "Names and lines"},
	{OPT_FAIL_ON_LEAK, "Other"},
};

_Static_assert(NR_ROWS <= OPTION_ROWS_MAX, "struct option_tables has room for all");

static void tell_of(const struct option_row *row, struct option_info *option)
{
	*option = (struct option_info){
		.letter = row->value < OPT_FORMAT ? row->value : 0,
		.name = row->name,
		.arg = row->arg,
		.help = row->help,
	};
	for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++)
		if (choices[c].value == row->value)
			option->values = choices[c].values;
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		if (groups[g].value == row->value)
			option->group = groups[g].heading;
}

bool report_option(size_t i, struct option_info *option)
{
	if (i >= NR_REPORT_ROWS)
		return false;
	tell_of(&rows[i], option);
	return true;
}

static void tell_of_borrowed(const struct borrowed *row, struct option_info *option)
{
	tell_of(option_row_of(row->value), option);
	if (row->help)
		option->help = row->help;
}

bool unwind_option(size_t i, struct option_info *option)
{
	if (i >= NR_UNWIND_ROWS)
		return false;
	tell_of_borrowed(&unwind_rows[i], option);
	option->group = NULL;
	return true;
}

bool diff_option(size_t i, struct option_info *option)
{
	if (i >= NR_DIFF_ROWS)
		return false;
	tell_of_borrowed(&diff_rows[i], option);
	if (diff_rows[i].value == OPT_FORMAT)
		option->values = DIFF_FORMATS;
	if (diff_rows[i].value == OPT_PID)
		option->arg = "PID[,PID]";
	return true;
}

/* The option number @i of @command, or NULL beyond the last. */
static const struct option_row *row_at(const char *command, size_t i)
{
	if (!strcmp(command, "diff"))
		return i < NR_DIFF_ROWS ? option_row_of(diff_rows[i].value) : NULL;
	if (!strcmp(command, "unwind"))
		return i < NR_UNWIND_ROWS ? option_row_of(unwind_rows[i].value) : NULL;
	return i < NR_REPORT_ROWS ? &rows[i] : NULL;
}

void option_tables_make(struct option_tables *tables, const char *command)
{
	const struct option_row *row;
	char *at = tables->shorts;

	*at++ = ':'; /* tell a missing argument from an unknown option */
	for (size_t i = 0; (row = row_at(command, i)) != NULL; i++) {
		tables->longs[i] = (struct option){
			.name = row->name,
			.has_arg = !row->arg	      ? no_argument
				   : *row->arg == '[' ? optional_argument
						      : required_argument,
			.val = row->value,
		};
		if (row->value >= OPT_FORMAT)
			continue;
		*at++ = (char)row->value;
		if (row->arg)
			*at++ = ':';
	}
}

void report_opts_print_help(const char *command)
{
	if (!strcmp(command, "diff")) {
		puts("usage: mleak diff [OPTIONS] BEFORE AFTER\n\n"
		     "Compares what is outstanding at the end of the traces BEFORE and AFTER: "
		     "stacks "
		     "that\n"
		     "are new, grown, shrunk or gone.\n");
		print_options(diff_option);
	} else if (!strcmp(command, "unwind")) {
		puts("usage: mleak unwind [OPTIONS] [FILE]\n\n"
		     "Unwinds all stacks of the trace in FILE (default: " DEFAULT_PATH
		     ") and keeps "
		     "them there, so\n"
		     "that each report of it takes a fraction of the time.\n");
		print_options(unwind_option);
	} else {
		puts("usage: mleak report [OPTIONS] [FILE]\n\n"
		     "Shows which call paths allocated the blocks that were never freed, from the "
		     "trace\n"
		     "in FILE (default: " DEFAULT_PATH ").\n");
		print_options(report_option);
	}
}

const struct option_row *option_row_of(int value)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (rows[i].value == value)
			return &rows[i];
	return NULL;
}
