/* options.c - see options.h */
#include "report/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"

#define DEFAULT_PATH	  "mleak.mlk"
#define DEFAULT_DEBUG_DIR "/usr/lib/debug"

/* Options without a short form. */
enum {
	OPT_FORMAT = 256,
	OPT_FOLDED,
	OPT_INVERTED,
	OPT_INLINE,
	OPT_ADDRESSES,
	OPT_DEBUG_DIR,
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
	{"format", OPT_FORMAT, "FORMAT", "tree (the default), or folded for flame graphs"},
	{"folded", OPT_FOLDED, NULL, "the same as --format=folded"},
	{"top", 'n', "N", "only the N stacks with most outstanding bytes"},
	{"pid", OPT_PID, "PID", "only what the process PID allocated, of several in a trace"},
	{"inverted", OPT_INVERTED, NULL, "begin at the function that allocated"},
	{"inline", OPT_INLINE, NULL, "show functions that the compiler inlined, too"},
	{"addresses", OPT_ADDRESSES, NULL, "MODULE+0xADDR in place of names"},
	{"debug-dir", OPT_DEBUG_DIR, "DIR",
	 "look for debug information here before " DEFAULT_DEBUG_DIR ";\nmay be repeated"},
	{"debuginfod", OPT_DEBUGINFOD, NULL,
	 "fetch debug information that is not here from DEBUGINFOD_URLS;\nwithout this option "
	 "the network is never used"},
	{"dump", OPT_DUMP, "[=full]",
	 "print all records of the trace in place of a report;\nfull, or given twice: and all "
	 "stacks"},
	{"help", 'h', NULL, "print this help"},
};

#define NR_ROWS (sizeof(rows) / sizeof(*rows))

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
	printf("usage: mleak report [OPTIONS] [FILE]\n\n"
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
	opts->folded = !strcmp(arg, "folded");
	if (!opts->folded && strcmp(arg, "tree") != 0) {
		log_error("unknown format '%s': it is tree or folded", arg);
		return -EINVAL;
	}
	return 0;
}

static int parse_top(struct report_opts *opts, const char *arg)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(arg, &end, 10);
	/* strtoull() takes a sign and white space, too */
	if (!isdigit((unsigned char)*arg) || *end || errno || !number || number > SIZE_MAX) {
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
	switch (option) {
	case OPT_FORMAT:
		return parse_format(opts, optarg);
	case OPT_FOLDED:
		opts->folded = true;
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
	case OPT_DUMP:
		return parse_dump(opts, optarg);
	case 'h':
		opts->help = true;
		return 0;
	default:
		return wrong_option(option, argv);
	}
}

int report_opts_parse(struct report_opts *opts, int argc, char **argv)
{
	struct tables tables = {0};
	int option, err = 0;

	*opts = (struct report_opts){.path = DEFAULT_PATH};
	/* each takes an argument, so there cannot be more */
	opts->debug_dirs = calloc((size_t)argc + 1, sizeof(*opts->debug_dirs));
	if (!opts->debug_dirs)
		return -ENOMEM;
	make_tables(&tables);
	opterr = 0;
	optind = 0; /* begin anew, wherever main() was */
	while (!err && (option = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1)
		err = take_option(opts, option, argv);
	if (err || opts->help)
		return err;
	if (argc - optind > 1) {
		log_error("one trace at a time: '%s' and '%s' were given", argv[optind],
			  argv[optind + 1]);
		return -EINVAL;
	}
	if (optind < argc)
		opts->path = argv[optind];
	opts->debug_dirs[opts->nr_debug_dirs++] = DEFAULT_DEBUG_DIR;
	opts->view.details = !opts->folded;
	return 0;
}

void report_opts_release(struct report_opts *opts)
{
	free(opts->debug_dirs);
	opts->debug_dirs = NULL;
}
