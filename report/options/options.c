/* options.c - see options.h */
#include "report/options/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/options/option_apply.h"
#include "report/options/option_table.h"

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

static bool is_diff(char **argv)
{
	return !strcmp(argv[0], "diff");
}

static bool is_why(char **argv)
{
	return !strcmp(argv[0], "why");
}

/* What is asked for comes before the trace, which may be left out behind an address. */
static int read_why(struct report_opts *opts, int argc, char **argv)
{
	int nr = argc - optind;

	opts->why = true;
	if (nr > 2) {
		log_error("usage: mleak why [OPTIONS] [ADDRESS|STACK] [FILE]");
		return -EINVAL;
	}
	if (nr == 2 || (nr == 1 && !strncmp(argv[optind], "0x", 2)))
		opts->why_what = argv[optind++];
	if (optind < argc)
		opts->path = argv[optind];
	return 0;
}

/* The traces, behind all options. */
static int read_paths(struct report_opts *opts, int argc, char **argv)
{
	int nr = argc - optind;

	if (is_why(argv))
		return read_why(opts, argc, argv);
	/* two moments of one */
	if (is_diff(argv) && opts->choice.moments && nr == 1) {
		opts->before = opts->path = argv[optind];
	} else if (is_diff(argv)) {
		if (nr == 1 && opts->at) {
			log_error("one trace is compared at two moments, and --at has one: give "
				  "--at A,B, as --at mark:1,mark:2 or --at 0s,10s, or two traces");
			return -EINVAL;
		}
		if (nr != 2) {
			log_error("usage: mleak diff [OPTIONS] BEFORE AFTER, or mleak diff "
				  "[OPTIONS] --at A,B FILE");
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
	int err;

	*opts = (struct report_opts){.path = DEFAULT_PATH};
	/* each takes an argument, so there cannot be more; and three of complete_debug_dirs() */
	opts->debug_dirs = calloc((size_t)argc + 3, sizeof(*opts->debug_dirs));
	opts->roots = calloc((size_t)argc, sizeof(*opts->roots));
	if (!opts->debug_dirs || !opts->roots)
		return -ENOMEM;
	err = options_read(option_rows_of(argv[0]), false, argc, argv, option_apply, opts);
	if (err || opts->help)
		return err;
	err = read_paths(opts, argc, argv);
	if (err)
		return err;
	opts->view.merged = (opts->format == FORMAT_TREE || opts->format == FORMAT_HTML) &&
			    !opts->by && !opts->growth && !opts->timeline && !opts->before &&
			    !opts->choice.pid;
	opts->view.details = opts->format != FORMAT_FOLDED;
	opts->view.all = (format_has_history(opts->format) && !opts->before) || opts->timeline ||
			 (opts->view.cost != COST_OUTSTANDING && opts->view.cost != COST_BLOCKS &&
			  opts->view.cost != COST_LOST);
	err = complete_debug_dirs(opts);
	return err ? err : report_opts_check(opts);
}

bool cache_mode_read(enum cache_mode *mode)
{
	static const char *const names[] = {
		[CACHE_NEVER] = "never", [CACHE_AUTO] = "auto", [CACHE_ALWAYS] = "always"};
	const char *text = getenv("MLEAK_CACHE");

	*mode = CACHE_AUTO;
	if (!text || !*text)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i])) {
			*mode = (enum cache_mode)i;
			return true;
		}
	return false;
}

int report_opts_cache(struct report_opts *opts)
{
	opts->cache = CACHE_NEVER;
	if (opts->no_cache || cache_mode_read(&opts->cache))
		return 0;
	log_error("MLEAK_CACHE is '%s', and can be never, auto or always", getenv("MLEAK_CACHE"));
	return -EINVAL;
}

void report_opts_release(struct report_opts *opts)
{
	free(opts->debug_dirs);
	free(opts->roots);
	free(opts->symfs_debug);
	free(opts->moment);
	opts->moment = NULL;
	opts->debug_dirs = NULL;
	opts->roots = NULL;
}
