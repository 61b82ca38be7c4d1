/* option_table.c - see option_table.h */
#include "report/options/option_table.h"

#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "report/options/options.h"

static const struct option_info rows[] = {
	{.key = OPT_FORMAT,
	 .name = "format",
	 .arg = "FORMAT",
	 .help = "tree (the default), flat, folded, json, csv, pprof, heaptrack, speedscope, html; "
		 "for CI junit or github",
	 .values = "tree flat folded json csv pprof heaptrack speedscope html junit github",
	 .group = "What is shown"},
	{.key = OPT_FOLDED, .name = "folded", .help = "the same as --format=folded"},
	{.key = OPT_FLAT,
	 .name = "flat",
	 .help = "the same as --format=flat: one stack after the other"},
	{.key = 'n',
	 .name = "top",
	 .arg = "N",
	 .help = "only the N stacks with most outstanding bytes; of --growth those that grew most, "
		 "of --by "
		 "the first rows"},
	{.key = OPT_INVERTED, .name = "inverted", .help = "begin at the function that allocated"},
	{.key = OPT_FULL_RECURSION,
	 .name = "full-recursion",
	 .help = "show each call of a recursion, in place of one with the number of repetitions"},
	{.key = OPT_PER_PROCESS,
	 .name = "per-process",
	 .help = "of several processes, a tree and a line for each, in place of one for those of "
		 "a program; exited ones, too"},
	{.key = OPT_BY,
	 .name = "by",
	 .arg = "KEY",
	 .help = "in place of stacks, a table by KEY, also as csv and json. cgroup, cache, order "
		 "and flags are for the kernel's memory alone",
	 .values = "thread thread-name module size function file age process cgroup cache order "
		   "flags"},
	{.key = OPT_GROWTH,
	 .name = "growth",
	 .help = "is it a leak: how each stack grew, which share of its blocks was freed, and how "
		 "long they lived; also csv and json"},
	{.key = OPT_TIMELINE,
	 .name = "timeline",
	 .help = "what was outstanding over time, the most in each interval; also with "
		 "--format=csv or json"},
	{.key = OPT_DIFF,
	 .name = "diff",
	 .arg = "BEFORE",
	 .help = "what is outstanding more, or less, than in the trace BEFORE; also with --folded, "
		 "--format=csv, json or html"},
	{.key = OPT_COST,
	 .name = "cost",
	 .arg = "COST",
	 .help = "what --folded counts and json and csv sort by, of blocks also the tree and "
		 "--flat. allocated, peak and temporary show stacks without outstanding blocks, "
		 "too; lost counts what no pointer leads to [outstanding]",
	 .values = "outstanding allocated peak temporary blocks lost"},
	{.key = OPT_TEMPORARY,
	 .name = "temporary",
	 .arg = "MS",
	 .help = "blocks that lived at most this many milliseconds count as temporary, too; for "
		 "--cost temporary, json and csv"},
	{.key = OPT_ADDR,
	 .name = "addr",
	 .arg = "ADDR",
	 .help = "in place of a report, whose memory this is: the block that holds it, or held it "
		 "last, and its neighbours; also with --format=json"},
	{.key = OPT_AROUND,
	 .name = "around",
	 .arg = "N",
	 .help = "with --addr: N blocks on each side, 1 to 1000"},
	{.key = OPT_RESIDENT,
	 .name = "resident",
	 .help = "in place of a report, whose the resident memory was when --reach read it: "
		 "blocks, what is free between them, stacks, files; also with --format=json"},
	{.key = OPT_DUMP,
	 .name = "dump",
	 .arg = "[=full]",
	 .help = "print all records of the trace in place of a report; full, or given twice: also "
		 "all stacks",
	 .values = "full"},

	{.key = OPT_PID,
	 .name = "pid",
	 .arg = "PID",
	 .help = "only what the process PID allocated, of several in a trace; with --diff, PID,PID "
		 "names "
		 "one in each trace",
	 .group = "Of which blocks and stacks"},
	{.key = OPT_THREAD,
	 .name = "thread",
	 .arg = "TID|NAME",
	 .help = "only blocks that this thread allocated; NAME may have * and ?"},
	{.key = OPT_MODULE,
	 .name = "module",
	 .arg = "NAME",
	 .help = "only stacks through this program or library; NAME may have * and ?"},
	{.key = OPT_FUNCTION,
	 .name = "function",
	 .arg = "REGEX",
	 .help = "only stacks through a function that matches"},
	{.key = OPT_STACK,
	 .name = "stack",
	 .arg = "ID",
	 .help = "only the stack with this id, as --format=json and csv have it: it is the same in "
		 "all "
		 "traces of one build"},
	{.key = OPT_MIN_BYTES,
	 .name = "min-bytes",
	 .arg = "BYTES",
	 .help = "only stacks with at least this much outstanding; K, M, G may follow"},
	{.key = OPT_MIN_BLOCKS,
	 .name = "min-blocks",
	 .arg = "N",
	 .help = "only stacks with at least this many blocks outstanding"},
	{.key = OPT_OLDER,
	 .name = "older",
	 .arg = "AGE",
	 .help = "only blocks at least this old at the end: seconds, or with a unit as in 500ms, "
		 "10s, 5m, 1h, 1d"},
	{.key = OPT_VERDICT,
	 .name = "verdict",
	 .arg = "WORDS",
	 .help = "only blocks of which the pointers in memory say this; with commas between: the "
		 "recording had --reach",
	 .values = "none lost lost-with stale possible held"},
	{.key = OPT_LOST,
	 .name = "lost",
	 .help = "the same as --verdict lost,lost-with: blocks to which no pointer is left"},
	{.key = OPT_STARTS_ONLY,
	 .name = "start-pointers-only",
	 .help = "for verdicts: a word that points into a block, not to its beginning, holds "
		 "nothing"},
	{.key = OPT_TAG_MASK,
	 .name = "tag-mask",
	 .arg = "MASK",
	 .help = "for verdicts: these low bits of a word are a tag, as 0x7, and no part of its "
		 "address"},
	{.key = OPT_ROOT,
	 .name = "root",
	 .arg = "RANGE|NAME",
	 .help = "for verdicts: words at these addresses, as 0x7f5000-0x7f6000, or in the variable "
		 "NAME hold what they point to, whatever memory that is; may be given several "
		 "times"},
	{.key = OPT_AT,
	 .name = "at",
	 .arg = "TIME",
	 .help = "the state this long after the start of the recording: seconds, or with a unit; "
		 "or at a mark: mark:1, mark:TEXT"},
	{.key = OPT_BETWEEN,
	 .name = "between",
	 .arg = "A,B",
	 .help = "what was allocated after A and was still outstanding at B; times, or marks"},
	{.key = OPT_SUPPRESSIONS,
	 .name = "suppressions",
	 .arg = "FILE",
	 .help = "leave out what matches a line leak:PATTERN of FILE, as LeakSanitizer does"},
	{.key = OPT_NO_EMBEDDED,
	 .name = "no-embedded-suppressions",
	 .help = "show what a recorded program's own __lsan_default_suppressions() would leave "
		 "out"},

	{.key = OPT_INLINE,
	 .name = "inline",
	 .help = "also show functions that the compiler inlined",
	 .group = "Names and lines"},
	{.key = OPT_OFFSETS,
	 .name = "offsets",
	 .help = "show FUNCTION+0xOFFSET, the place to which a call returns"},
	{.key = OPT_ADDRESSES, .name = "addresses", .help = "MODULE+0xADDR in place of names"},
	{.key = OPT_FULL_NAMES,
	 .name = "full-names",
	 .help = "show C++ names with all template arguments, those that are the default, too; "
		 "formats for programs have them anyway"},
	{.key = OPT_NO_DEMANGLE,
	 .name = "no-demangle",
	 .help = "show mangled names of C++ and Rust, as the files have them"},
	{.key = OPT_DEBUG_DIR,
	 .name = "debug-dir",
	 .arg = "DIR",
	 .help = "look for debug information here before " DEFAULT_DEBUG_DIR
		 "; may be given several "
		 "times"},
	{.key = OPT_SYMFS,
	 .name = "symfs",
	 .arg = "DIR",
	 .help = "look for programs, libraries and debug files below DIR first, as below the root "
		 "of the "
		 "recorded system"},
	{.key = OPT_VMLINUX,
	 .name = "vmlinux",
	 .arg = "FILE",
	 .help = "take lines and inlined functions of the kernel from FILE, the vmlinux with debug "
		 "information of the recorded kernel"},
	{.key = OPT_DEBUGINFOD,
	 .name = "debuginfod",
	 .help = "fetch missing debug information from DEBUGINFOD_URLS; without this option the "
		 "network is never used"},

	{.key = OPT_FAIL_ON_LEAK,
	 .name = "fail-on-leak",
	 .arg = "[=BYTES]",
	 .help = "exit with 1 when a byte (or more than BYTES) is shown or, of a difference, came "
		 "to be; or a block was overrun. With 2 when the trace cannot tell. lost in place "
		 "of BYTES, or lost:BYTES: only of what no pointer leads to",
	 .group = "Other"},
	{.key = OPT_FAIL_ON,
	 .name = "fail-on",
	 .arg = "WHAT",
	 .help = "exit with 1 when there is a leak, as --fail-on-leak, or when a stack is growing, "
		 "as --growth says; or, lost, as --fail-on-leak=lost",
	 .values = "leak growing lost"},
	{.key = OPT_STRICT, .name = "strict", .help = "exit with 2 when there was a warning"},
	{.key = OPT_COLOR,
	 .name = "color",
	 .arg = "WHEN",
	 .help = "auto (on a terminal, unless NO_COLOR is set), always or never",
	 .values = "auto always never"},
	{.key = OPT_LINES,
	 .name = "lines",
	 .arg = "KIND",
	 .help = "of a tree: auto (utf-8 on a terminal whose locale has it), utf-8 or ascii",
	 .values = "auto utf-8 ascii"},
	{.key = OPT_BYTES,
	 .name = "bytes",
	 .help = "exact figures in bytes, in place of KiB, MiB and GiB; formats for programs have "
		 "them anyway"},
	{.key = OPT_NO_LIMIT,
	 .name = "no-limit",
	 .help = "show all on a terminal, too; without this option some screens of it, unless "
		 "--top "
		 "is given"},
	{.key = OPT_NO_PAGER, .name = "no-pager", .help = "show the report on a terminal at once"},
	{.key = OPT_NO_CACHE,
	 .name = "no-cache",
	 .help = "neither read nor write FILE.stacks, which makes the next report of a large "
		 "trace faster"},
	{.key = 'j',
	 .name = "jobs",
	 .arg = "N",
	 .help = "read the trace with N threads [one for each CPU]; the report is the same"},
	{.key = OPT_MAX_MEMORY,
	 .name = "max-memory",
	 .arg = "BYTES",
	 .help = "give up when the report needs more memory [half of the machine's]; K, M, G may "
		 "follow"},
	{.key = 'q', .name = "quiet", .help = "do not show the progress on a terminal"},
	{.key = 'h', .name = "help", .help = "print this help"},

	/* of why alone */
	{.key = OPT_FULL,
	 .name = "full",
	 .help = "show the whole stack of each block, not only its innermost functions"},
	/* of unwind alone */
	{.key = OPT_DROP_RAW,
	 .name = "drop-raw",
	 .help = "keep only the call paths, not the registers and stacks that they were unwound "
		 "from: a small trace, which cannot be unwound again"},
	{.key = 'o',
	 .name = "output",
	 .arg = "FILE",
	 .help = "write the trace with its stacks to FILE; an existing one is kept as FILE.old [in "
		 "place of the trace]"},
};

#define NR_ROWS	       (sizeof(rows) / sizeof(*rows))
#define NR_REPORT_ROWS (NR_ROWS - 3)

const struct option_info *option_row_of(int key)
{
	size_t i = 0;

	while (rows[i].key != key)
		i++;
	return &rows[i];
}

bool report_option(size_t i, struct option_info *option)
{
	if (i < NR_REPORT_ROWS)
		*option = rows[i];
	return i < NR_REPORT_ROWS;
}
