/* options.c - see options.h */
#include "report/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mleak.h"
#include "report/option_rows.h"
#include "report/values.h"

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
	opts->choice.pid = (uint32_t)value;
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

static int wrong_option(int problem, char **argv)
{
	const struct option_row *row = option_row_of(optopt);

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
	case OPT_ADDR:
		opts->find_addr = true;
		return check(value_address(optarg, &opts->addr), "addr", optarg,
			     "an address as 0x55d0c0a812c0");
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
	struct option_tables tables = {0};
	int option, err = 0;

	*opts = (struct report_opts){.path = DEFAULT_PATH};
	/* each takes an argument, so there cannot be more; and three of complete_debug_dirs() */
	opts->debug_dirs = calloc((size_t)argc + 3, sizeof(*opts->debug_dirs));
	if (!opts->debug_dirs)
		return -ENOMEM;
	option_tables_make(&tables);
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
