/* option_rows.c - see option_rows.h */
#include "report/option_rows.h"

#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "report/options.h"

static const struct option_row rows[] = {
	{"format", OPT_FORMAT, "FORMAT",
	 "tree (the default), flat, folded, json, csv, pprof, heaptrack,\nspeedscope or html"},
	{"folded", OPT_FOLDED, NULL, "the same as --format=folded"},
	{"flat", OPT_FLAT, NULL, "the same as --format=flat: one stack after the other"},
	{"by", OPT_BY, "KEY",
	 "in place of stacks, a table by thread, module, size, function, file\nor age; with "
	 "--format=csv, too"},
	{"growth", OPT_GROWTH, NULL,
	 "is it a leak? How each stack grew, its blocks that were freed, and\nhow long they lived; "
	 "with --format=csv, too"},
	{"timeline", OPT_TIMELINE, NULL, "what was outstanding over time; with --format=csv, too"},
	{"diff", OPT_DIFF, "BEFORE",
	 "what is outstanding more, or less, than in the trace BEFORE;\nwith --folded or "
	 "--format=csv, too"},
	{"cost", OPT_COST, "COST",
	 "what --folded counts: outstanding (the default), allocated or peak\nbytes, or temporary "
	 "blocks"},
	{"thread", OPT_THREAD, "TID|NAME",
	 "only blocks that this thread got; NAME may have * and ?"},
	{"module", OPT_MODULE, "NAME",
	 "only stacks through this program or library; NAME may have * and ?"},
	{"function", OPT_FUNCTION, "REGEX", "only stacks through such a function"},
	{"min-bytes", OPT_MIN_BYTES, "BYTES",
	 "only stacks with so much outstanding; K, M, G may follow"},
	{"min-blocks", OPT_MIN_BLOCKS, "N", "only stacks with so many blocks outstanding"},
	{"older", OPT_OLDER, "AGE", "only blocks so old at the end: 10 or 10s, 500ms, 5m, 2h, 1d"},
	{"at", OPT_AT, "TIME", "as it was so long after the start of the recording"},
	{"between", OPT_BETWEEN, "A,B",
	 "what was given out after A and was still outstanding at B"},
	{"suppressions", OPT_SUPPRESSIONS, "FILE",
	 "leave out what matches a line leak:PATTERN of FILE, as\nLeakSanitizer does"},
	{"fail-on-leak", OPT_FAIL_ON_LEAK, "[=BYTES]",
	 "exit with 1 when a byte is shown, or more than BYTES"},
	{"top", 'n', "N", "only the N stacks with most outstanding bytes"},
	{"pid", OPT_PID, "PID", "only what the process PID allocated, of several in a trace"},
	{"inverted", OPT_INVERTED, NULL, "begin at the function that allocated"},
	{"inline", OPT_INLINE, NULL, "show functions that the compiler inlined, too"},
	{"addresses", OPT_ADDRESSES, NULL, "MODULE+0xADDR in place of names"},
	{"debug-dir", OPT_DEBUG_DIR, "DIR",
	 "look for debug information here before " DEFAULT_DEBUG_DIR ";\nmay be repeated"},
	{"symfs", OPT_SYMFS, "DIR",
	 "look for programs, libraries and debug files below DIR first,\nas below the root of the "
	 "recorded system"},
	{"debuginfod", OPT_DEBUGINFOD, NULL,
	 "fetch debug information that is not here from DEBUGINFOD_URLS;\nwithout this option "
	 "the network is never used"},
	{"color", OPT_COLOR, "WHEN",
	 "auto (on a terminal, unless NO_COLOR is set), always or never"},
	{"no-pager", OPT_NO_PAGER, NULL, "show the report on a terminal at once"},
	{"dump", OPT_DUMP, "[=full]",
	 "print all records of the trace in place of a report;\nfull, or given twice: and all "
	 "stacks"},
	{"help", 'h', NULL, "print this help"},
};

#define NR_ROWS (sizeof(rows) / sizeof(*rows))

/* Of options that take one of few values: all of them. */
static const struct {
	int value; /* of the row */
	const char *values;
} choices[] = {
	{OPT_FORMAT, "tree flat folded json csv pprof heaptrack speedscope html"},
	{OPT_BY, "thread module size function file age"},
	{OPT_COST, "outstanding allocated peak temporary"},
	{OPT_COLOR, "auto always never"},
	{OPT_DUMP, "full"},
};

_Static_assert(NR_ROWS <= OPTION_ROWS_MAX, "struct option_tables has room for all");

bool report_option(size_t i, struct option_info *option)
{
	if (i >= NR_ROWS)
		return false;
	*option = (struct option_info){
		.letter = rows[i].value < OPT_FORMAT ? rows[i].value : 0,
		.name = rows[i].name,
		.arg = rows[i].arg,
		.help = rows[i].help,
	};
	for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++)
		if (choices[c].value == rows[i].value)
			option->values = choices[c].values;
	return true;
}

void option_tables_make(struct option_tables *tables)
{
	char *at = tables->shorts;

	*at++ = ':'; /* tell a missing argument from an unknown option */
	for (size_t i = 0; i < NR_ROWS; i++) {
		tables->longs[i] = (struct option){
			.name = rows[i].name,
			.has_arg = !rows[i].arg		 ? no_argument
				   : *rows[i].arg == '[' ? optional_argument
							 : required_argument,
			.val = rows[i].value,
		};
		if (rows[i].value >= OPT_FORMAT)
			continue;
		*at++ = (char)rows[i].value;
		if (rows[i].arg)
			*at++ = ':';
	}
}

void report_opts_print_help(void)
{
	printf("usage: mleak report [OPTIONS] [FILE]\n"
	       "       mleak diff [OPTIONS] BEFORE AFTER\n\n"
	       "Shows which call paths allocated the blocks that were never freed, from the trace\n"
	       "in FILE (default: " DEFAULT_PATH ").\n\n");
	for (size_t i = 0; i < NR_ROWS; i++) {
		const struct option_row *row = &rows[i];
		const char *newline = strchr(row->help, '\n');
		int first = newline ? (int)(newline - row->help) : (int)strlen(row->help);
		char left[64];

		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", row->value < OPT_FORMAT ? '-' : ' ',
			 row->value < OPT_FORMAT ? row->value : ' ',
			 row->value < OPT_FORMAT ? "," : " ", row->name,
			 row->arg && *row->arg != '[' ? " " : "", row->arg ? row->arg : "");
		printf("  %-22s %.*s\n", left, first, row->help);
		if (newline)
			printf("  %-22s %s\n", "", newline + 1);
	}
}

const struct option_row *option_row_of(int value)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (rows[i].value == value)
			return &rows[i];
	return NULL;
}
