/* options.c - see options.h */
#include "report/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mleak.h"
#include "report/values.h"

#define DEFAULT_PATH	  "mleak.mlk"
#define DEFAULT_DEBUG_DIR "/usr/lib/debug"

/* Options without a short form. */
enum {
	OPT_FORMAT = 256,
	OPT_FOLDED,
	OPT_FLAT,
	OPT_BY,
	OPT_COLOR,
	OPT_NO_PAGER,
	OPT_DIFF,
	OPT_GROWTH,
	OPT_TIMELINE,
	OPT_COST,
	OPT_THREAD,
	OPT_MODULE,
	OPT_FUNCTION,
	OPT_MIN_BYTES,
	OPT_MIN_BLOCKS,
	OPT_OLDER,
	OPT_AT,
	OPT_BETWEEN,
	OPT_SUPPRESSIONS,
	OPT_FAIL_ON_LEAK,
	OPT_INVERTED,
	OPT_INLINE,
	OPT_ADDRESSES,
	OPT_DEBUG_DIR,
	OPT_SYMFS,
	OPT_DEBUGINFOD,
	OPT_DUMP,
	OPT_PID
};

static const struct row {
	const char *name;
	int value;	 /* the letter of the short form, or one of the above */
	const char *arg; /* in [brackets]: may be left out */
	const char *help;
} rows[] = {
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

/* What getopt_long() wants, made from the rows. */
struct tables {
	struct option longs[NR_ROWS + 1];
	char shorts[2 * NR_ROWS + 2];
};

/* @tables is all zero before. */
static void make_tables(struct tables *tables)
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
		const struct row *row = &rows[i];
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

static int parse_format(struct report_opts *opts, const char *arg)
{
	if (!format_parse(arg, &opts->format))
		return 0;
	log_error("unknown format '%s': it is " FORMAT_NAMES, arg);
	return -EINVAL;
}

static int parse_top(struct report_opts *opts, const char *arg)
{
	uint64_t number;

	if (value_number(arg, &number) || !number || number > SIZE_MAX) {
		log_error("--top wants a number from 1, not '%s'", arg);
		return -EINVAL;
	}
	opts->view.top = (size_t)number;
	return 0;
}

static int parse_pid(struct report_opts *opts, const char *arg)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(arg, &end, 10);
	if (!isdigit((unsigned char)*arg) || *end || errno || !value || value > INT32_MAX) {
		log_error("--pid wants the number of a process, not '%s'", arg);
		return -EINVAL;
	}
	opts->view.pid = (uint32_t)value;
	return 0;
}

static int parse_cost(struct report_opts *opts, const char *arg)
{
	static const char *const names[] = {"outstanding", "allocated", "peak", "temporary"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], arg)) {
			opts->view.cost = (enum view_cost)i;
			return 0;
		}
	log_error("unknown cost '%s': it is outstanding, allocated, peak or temporary", arg);
	return -EINVAL;
}

/* Say it if an option's argument could not be read. */
static int check(int err, const char *option, const char *arg, const char *wanted)
{
	if (err == -EINVAL)
		log_error("--%s wants %s, not '%s'", option, wanted, arg);
	return err;
}

/* The options that choose blocks and stacks.  Returns 1 for any other one. */
static int take_choice(struct report_opts *opts, int option)
{
	static const char time[] = "a time as 10, 10s, 500ms, 5m, 2h or 1d";
	static const char size[] = "a number of bytes as 4096 or 64K";
	struct choice *choice = &opts->choice;

	switch (option) {
	case OPT_THREAD:
		choice->thread = optarg;
		return 0;
	case OPT_MODULE:
		opts->view.sieve.module = optarg;
		return 0;
	case OPT_FUNCTION:
		opts->view.sieve.function = optarg;
		return check(sieve_check(optarg), "function", optarg,
			     "an extended regular expression");
	case OPT_SUPPRESSIONS:
		opts->suppressions = optarg;
		return 0;
	case OPT_MIN_BYTES:
		return check(value_bytes(optarg, &opts->view.sieve.min_bytes), "min-bytes", optarg,
			     size);
	case OPT_MIN_BLOCKS:
		return check(value_number(optarg, &opts->view.sieve.min_blocks), "min-blocks",
			     optarg, "a number");
	case OPT_OLDER:
		return check(value_time(optarg, &choice->older_ns), "older", optarg, time);
	case OPT_AT:
		choice->until = true;
		choice->from_ns = 0;
		return check(value_time(optarg, &choice->until_ns), "at", optarg, time);
	case OPT_BETWEEN:
		choice->until = true;
		return check(value_times(optarg, &choice->from_ns, &choice->until_ns), "between",
			     optarg, "two times as 10s,5m, the second not before the first");
	case OPT_FAIL_ON_LEAK:
		opts->fail_on_leak = true;
		return optarg ? check(value_bytes(optarg, &opts->fail_bytes), "fail-on-leak",
				      optarg, size)
			      : 0;
	default:
		return 1;
	}
}

static int parse_symfs(struct report_opts *opts, const char *arg)
{
	struct stat st;

	if (stat(arg, &st) || !S_ISDIR(st.st_mode)) {
		log_error("--symfs wants a directory that is here, not '%s'", arg);
		return -EINVAL;
	}
	opts->symfs = arg;
	return 0;
}

/* @arg is NULL when there is none. */
static int parse_dump(struct report_opts *opts, const char *arg)
{
	if (arg && strcmp(arg, "full") != 0) {
		log_error("unknown kind of dump '%s': it is full, or nothing", arg);
		return -EINVAL;
	}
	opts->dump_stacks = arg || opts->dump;
	opts->dump = true;
	return 0;
}

/* The directories with debug information in the end: those given, those of --symfs, and ours.
 * Returns 0 or -ENOMEM. */
static int complete_debug_dirs(struct report_opts *opts)
{
	if (opts->symfs) {
		if (asprintf(&opts->symfs_debug, "%s" DEFAULT_DEBUG_DIR, opts->symfs) < 0) {
			opts->symfs_debug = NULL;
			return -ENOMEM;
		}
		opts->debug_dirs[opts->nr_debug_dirs++] = opts->symfs;
		opts->debug_dirs[opts->nr_debug_dirs++] = opts->symfs_debug;
	}
	opts->debug_dirs[opts->nr_debug_dirs++] = DEFAULT_DEBUG_DIR;
	return 0;
}

static const struct row *row_of(int value)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (rows[i].value == value)
			return &rows[i];
	return NULL;
}

static int wrong_option(int problem, char **argv)
{
	const struct row *row = row_of(optopt);

	if (row)
		log_error("option '--%s' wants %s argument; 'mleak report --help' lists the "
			  "options",
			  row->name, problem == ':' ? "an" : "no");
	else if (optopt)
		/* the word it is in may not be behind optind yet: others can follow in it */
		log_error("unknown option '-%c'; 'mleak report --help' lists the options", optopt);
	else
		log_error("unknown or ambiguous option '%s'; 'mleak report --help' lists the "
			  "options",
			  argv[optind - 1]);
	return -EINVAL;
}

static int take_option(struct report_opts *opts, int option, char **argv)
{
	int taken = take_choice(opts, option);

	if (taken <= 0)
		return taken;
	switch (option) {
	case OPT_FLAT:
		opts->format = FORMAT_FLAT;
		return 0;
	case OPT_BY:
		return check(group_parse(optarg, &opts->by), "by", optarg, GROUP_NAMES);
	case OPT_COLOR:
		return check(color_parse(optarg, &opts->color), "color", optarg,
			     "auto, always or never");
	case OPT_NO_PAGER:
		opts->no_pager = true;
		return 0;
	case OPT_DIFF:
		opts->before = optarg;
		return 0;
	case OPT_GROWTH:
		opts->growth = true;
		return 0;
	case OPT_TIMELINE:
		opts->timeline = true;
		return 0;
	case OPT_COST:
		return parse_cost(opts, optarg);
	case OPT_FORMAT:
		return parse_format(opts, optarg);
	case OPT_FOLDED:
		opts->format = FORMAT_FOLDED;
		return 0;
	case 'n':
		return parse_top(opts, optarg);
	case OPT_PID:
		return parse_pid(opts, optarg);
	case OPT_INVERTED:
		opts->view.inverted = true;
		return 0;
	case OPT_INLINE:
		opts->view.inlined = true;
		return 0;
	case OPT_DEBUGINFOD:
		opts->debuginfod = true;
		return 0;
	case OPT_ADDRESSES:
		opts->view.addresses = true;
		return 0;
	case OPT_DEBUG_DIR:
		opts->debug_dirs[opts->nr_debug_dirs++] = optarg;
		return 0;
	case OPT_SYMFS:
		return parse_symfs(opts, optarg);
	case OPT_DUMP:
		return parse_dump(opts, optarg);
	case 'h':
		opts->help = true;
		return 0;
	default:
		return wrong_option(option, argv);
	}
}

/* The traces, behind all options. */
static int take_paths(struct report_opts *opts, int argc, char **argv)
{
	int nr = argc - optind;

	if (!strcmp(argv[0], "diff")) {
		if (nr != 2 || opts->before) {
			log_error("usage: mleak diff [OPTIONS] BEFORE AFTER");
			return -EINVAL;
		}
		opts->before = argv[optind++];
	} else if (nr > 1) {
		log_error("one trace at a time: '%s' and '%s' were given", argv[optind],
			  argv[optind + 1]);
		return -EINVAL;
	}
	if (optind < argc)
		opts->path = argv[optind];
	return 0;
}

int report_opts_parse(struct report_opts *opts, int argc, char **argv)
{
	struct tables tables = {0};
	int option, err = 0;

	*opts = (struct report_opts){.path = DEFAULT_PATH};
	/* each takes an argument, so there cannot be more; and three of complete_debug_dirs() */
	opts->debug_dirs = calloc((size_t)argc + 3, sizeof(*opts->debug_dirs));
	if (!opts->debug_dirs)
		return -ENOMEM;
	make_tables(&tables);
	opterr = 0;
	optind = 0; /* begin anew, wherever main() was */
	while (!err && (option = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1)
		err = take_option(opts, option, argv);
	if (err || opts->help)
		return err;
	err = take_paths(opts, argc, argv);
	if (err)
		return err;
	opts->view.details = opts->format != FORMAT_FOLDED;
	opts->view.all = format_has_history(opts->format) || opts->timeline ||
			 opts->view.cost != COST_OUTSTANDING;
	err = complete_debug_dirs(opts);
	return err ? err : report_opts_check(opts);
}

void report_opts_release(struct report_opts *opts)
{
	free(opts->debug_dirs);
	free(opts->symfs_debug);
	opts->debug_dirs = NULL;
}
