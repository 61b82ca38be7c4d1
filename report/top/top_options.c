/* top_options.c - see top_options.h
 *
 * Options that are not of top itself are the recorder's, and passed on as they are given.
 */
#include "report/top/top_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline/options.h"
#include "cmdline/trace_name.h"
#include "mleak.h"
#include "report/base/array.h"
#include "report/base/sizes.h"
#include "report/name/short_name.h"

#define MOST_NS		  1000000000000000000ull
#define RESIDENT_NS	  10000000000u /* how often the resident memory is looked at, */
#define LEAST_RESIDENT_NS 1000000000u  /* and at most */

enum {
	OPT_SORT = 4096, /* beyond those of the recorder, also of its filters and the kernel */
	OPT_BY,
	OPT_RESIDENT,
	OPT_FLAT,
	OPT_PLAIN,
	OPT_BYTES,
	OPT_FULL_NAMES,
	OPT_FULL_RECURSION,
	OPT_DEBUG_DIR,
	OPT_MAX_MEMORY,
};

static const struct option_info own[] = {
	{.key = 'n',
	 .name = "top",
	 .arg = "N",
	 .help = "only the N first stacks [10]",
	 .group = "What to show"},
	{.key = OPT_SORT,
	 .name = "sort",
	 .arg = "KEY",
	 .help = "which stacks come first: bytes, blocks, rate (net bytes a second) or age [bytes]",
	 .values = "bytes blocks rate age"},
	{.key = OPT_BY,
	 .name = "by",
	 .arg = "KEY",
	 .help = "what processes or threads hold, in place of stacks; of the kernel's memory, also "
		 "slab caches and control groups",
	 .values = "process thread cache cgroup"},
	{.key = OPT_RESIDENT,
	 .name = "resident",
	 .help = "whose the resident memory is, read each INTERVAL or 10 seconds, in place of "
		 "stacks"},
	{.key = OPT_FLAT, .name = "flat", .help = "all frames of each stack, not one line of them"},
	{.key = 'C',
	 .name = "combined-only",
	 .help = "sums and frames of each stack alone, in the form of bcc's memleak"},
	{.key = 'a',
	 .name = "show-allocs",
	 .help = "address and size of each outstanding block, too"},
	{.key = 't', .name = "trace", .help = "each call as it happens, in place of tables"},
	{.key = OPT_PLAIN,
	 .name = "plain",
	 .help = "one table after the other, also on a terminal"},
	{.key = OPT_BYTES,
	 .name = "bytes",
	 .help = "exact figures in bytes, in place of KiB, MiB and GiB"},
	{.key = OPT_FULL_NAMES,
	 .name = "full-names",
	 .help = "C++ names with all template arguments, those that are the default, too"},
	{.key = OPT_FULL_RECURSION,
	 .name = "full-recursion",
	 .help = "each call of a recursion, in place of one with the number of repetitions"},
	{.key = OPT_DEBUG_DIR,
	 .name = "debug-dir",
	 .arg = "DIR",
	 .help = "look for debug information in DIR first; may be given several times"},
	{.key = OPT_MAX_MEMORY,
	 .name = "max-memory",
	 .arg = "BYTES",
	 .help = "take at most this much memory; K, M and G are known [half of the machine's]"},
};

#define NR_OWN (sizeof(own) / sizeof(own[0]))

/* Of the recorder's options, those that make no sense here. */
static bool is_left_out(const struct option_info *option)
{
	return !strcmp(option->name, "dry-run") || !strcmp(option->name, "switch-output") ||
	       !strcmp(option->name, "keep");
}

bool top_option(size_t i, struct option_info *option)
{
	size_t at = 0;

	if (i < NR_OWN) {
		*option = own[i];
		return true;
	}
	for (size_t k = NR_OWN; record_option(at, option); at++)
		if (!is_left_out(option) && k++ == i) {
			if (!strcmp(option->name, "output"))
				option->help =
					"keep the trace in FILE, too, where %p is the process, %h "
					"the host, %t the time; an existing one is kept as "
					"FILE.old [it is not kept]";
			return true;
		}
	return false;
}

void top_opts_help(void)
{
	puts("usage: mleak top [OPTIONS] FILE [INTERVAL [COUNT]]\n"
	     "       mleak top [OPTIONS] -p PID [INTERVAL [COUNT]]\n"
	     "       mleak top [OPTIONS] --kernel [INTERVAL [COUNT]]\n"
	     "       mleak top [OPTIONS] [INTERVAL [COUNT]] -- COMMAND [ARGUMENTS]\n\n"
	     "Shows while a program runs which stacks hold memory: of a trace that is being "
	     "written,\n"
	     "of a running process, or of a command that is started.  Prints a table each "
	     "INTERVAL\n"
	     "(5 seconds), COUNT of them.  A trace that is finished is shown as at its end, or "
	     "with\n"
	     "an INTERVAL as at each of these times.  ^C or the target's end ends it.\n");
	print_options(top_option);
	puts("\nThe exit status is that of COMMAND or of the recording, as of 'mleak record'.");
}

static int add_record(struct top_opts *o, const char *word)
{
	return array_append(&o->record, &o->nr_record, &o->record_room, &word, sizeof(word));
}

/* The recorder is to have it; it is checked there. */
static int pass_on(struct top_opts *o, const struct option_info *option, const char *text)
{
	char *word;
	int err;

	if (!o->from)
		o->from = option->name;
	if (!strcmp(option->name, "quiet"))
		log_quiet();
	o->of_kernel |= !strcmp(option->name, "kernel");
	o->reach |= !strcmp(option->name, "reach");
	o->targets |= option->key == 'p' || o->of_kernel;
	if (asprintf(&word, text ? "--%s=%s" : "--%s", option->name, text) < 0)
		return -ENOMEM;
	err = add_record(o, word);
	if (err)
		free(word);
	return err;
}

int top_opts_preload(struct top_opts *opts)
{
	static const char word[] = "--backend=preload";
	char *copy;

	if (!strcmp(opts->record[opts->nr_record - 1], word))
		return -EEXIST;
	copy = strdup(word);
	return copy ? add_record(opts, copy) : -ENOMEM;
}

static int add_debug_dir(struct top_opts *o, const char *text)
{
	if (o->nr_debug_dirs == TOP_MAX_DIRS) {
		log_error("too many directories: give at most %d with --debug-dir", TOP_MAX_DIRS);
		return -EINVAL;
	}
	o->debug_dirs[o->nr_debug_dirs++] = text;
	return 0;
}

/* An option without a value.  Returns whether @key is one. */
static bool apply_flag(struct top_opts *o, int key)
{
	switch (key) {
	case OPT_RESIDENT:
		o->resident = true;
		return true;
	case OPT_FLAT:
		o->form = TOP_FLAT;
		return true;
	case 'C':
		o->form = TOP_COMBINED;
		return true;
	case 'a':
		o->blocks = true;
		return true;
	case 't':
		o->calls = true;
		return true;
	case OPT_PLAIN:
		o->plain = true;
		return true;
	case OPT_BYTES:
		sizes_set_exact(true);
		return true;
	case OPT_FULL_NAMES:
		short_names_disable();
		return true;
	case OPT_FULL_RECURSION:
		o->full_recursion = true;
		return true;
	case 'h':
		o->help = true;
		return true;
	default:
		return false;
	}
}

static int apply_option(void *ctx, const struct option_info *option, const char *text)
{
	struct top_opts *o = ctx;
	uint64_t rows = 0;
	int word, err;

	switch (option->key) {
	case 'n':
		err = option_number(option, text, 1, 1u << 20, NULL, &rows);
		o->rows = (size_t)rows;
		o->rows_given = true;
		return err;
	case OPT_SORT:
		word = option_word(option, text);
		o->sort = word < 0 ? o->sort : (enum top_sort)word;
		return word < 0 ? word : 0;
	case OPT_BY:
		word = option_word(option, text);
		o->by = word < 0 ? o->by : (enum group_kind)word;
		o->grouped = true;
		return word < 0 ? word : 0;
	case OPT_DEBUG_DIR:
		return add_debug_dir(o, text);
	case OPT_MAX_MEMORY:
		return option_bytes(option, text, 1 << 20, UINT64_MAX, NULL, &o->max_memory);
	case 'o':
		o->output = text;
		return 0;
	default:
		return apply_flag(o, option->key) ? 0 : pass_on(o, option, text);
	}
}

/* What stands where an option has none of its own. */
static int read_interval(const char *text, uint64_t *ns)
{
	static const struct option_info row = {.name = "INTERVAL"};

	if (!option_time(&row, text, 1, ns) && *ns <= MOST_NS)
		return 0;
	return -EINVAL;
}

static int read_words(struct top_opts *o, char **words, int nr)
{
	static const struct option_info count = {.name = "COUNT"};
	int at = 0, err = 0;

	if (!o->targets && !o->command && at < nr)
		o->path = words[at++];
	if (at < nr)
		err = read_interval(words[at++], &o->interval_ns);
	if (!err && at < nr)
		err = option_number(&count, words[at++], 1, UINT64_MAX, NULL, &o->count);
	if (!err && at < nr) {
		log_error("'%s' is one word too many; 'mleak top --help' shows what there can be",
			  words[at]);
		err = -EINVAL;
	}
	return err;
}

bool top_opts_fit(const struct top_opts *o, bool of_kernel)
{
	if (of_kernel || !o->grouped || o->by < GROUPS_CACHES)
		return true;
	log_error("only the kernel's memory is in caches and control groups: give --by=process or "
		  "thread, or record with --kernel");
	return false;
}

static int check(const struct top_opts *o)
{
	if (!o->path && !o->targets && !o->command) {
		log_error("name a trace, a process with -p PID, --kernel, or a command behind --");
		return -EINVAL;
	}
	if (o->path && (o->from || o->output)) {
		log_error("--%s is for a recording, and '%s' is a trace",
			  o->from ? o->from : "output", o->path);
		return -EINVAL;
	}
	if (o->output && trace_name_check(o->output, !o->of_kernel, false))
		return -EINVAL;
	if (o->blocks && o->form == TOP_COMBINED) {
		log_error("--combined-only shows sums alone, --show-allocs single blocks: give one "
			  "of them");
		return -EINVAL;
	}
	if (o->grouped && (o->blocks || o->calls || o->sort != TOP_BYTES || o->form != TOP_TABLE)) {
		log_error("--by prints sums; --sort, --flat, --combined-only, --show-allocs and "
			  "--trace are about stacks");
		return -EINVAL;
	}
	if (o->resident && (o->grouped || o->blocks || o->calls || o->of_kernel ||
			    o->sort != TOP_BYTES || o->form != TOP_TABLE)) {
		log_error("--resident says where a process's memory is; --kernel, --by, --sort, "
			  "--flat, "
			  "--combined-only, --show-allocs and --trace are about blocks");
		return -EINVAL;
	}
	if (!o->path && !o->of_kernel && !top_opts_fit(o, false))
		return -EINVAL;
	if (o->calls && (o->blocks || o->interval_ns || o->form != TOP_TABLE)) {
		log_error("--trace prints calls in place of tables; an interval, --flat, "
			  "--combined-only and --show-allocs are about tables");
		return -EINVAL;
	}
	return 0;
}

/* Have the recorder read where the memory is: by single passes, as nobody asks what is lost. */
static int want_resident(struct top_opts *o)
{
	uint64_t ns = o->interval_ns ? o->interval_ns : RESIDENT_NS;
	char *every;
	int err;

	if (!o->resident || o->path || o->reach)
		return 0;
	if (ns < LEAST_RESIDENT_NS)
		ns = LEAST_RESIDENT_NS;
	if (asprintf(&every, "--reach=%" PRIu64 "ms,spare", ns / 1000000) < 0)
		return -ENOMEM;
	err = add_record(o, every);
	if (err) {
		free(every);
		return err;
	}
	every = strdup("--passes=1");
	err = every ? add_record(o, every) : -ENOMEM;
	if (err)
		free(every);
	return err;
}

int top_opts_parse(struct top_opts *opts, int argc, char **argv)
{
	int nr = 1, err;

	*opts = (struct top_opts){.rows = TOP_USUAL_ROWS};
	/* The command is set apart, for the words before it may stand anywhere. */
	while (nr < argc && strcmp(argv[nr], "--") != 0)
		nr++;
	if (nr + 1 < argc)
		opts->command = argv + nr + 1;
	err = add_record(opts, strdup("record"));
	if (!err)
		err = options_read(top_option, false, nr, argv, apply_option, opts);
	if (err || opts->help)
		return err;
	err = read_words(opts, argv + optind, nr - optind);
	if (!err)
		err = check(opts);
	return err ? err : want_resident(opts);
}

void top_opts_release(struct top_opts *opts)
{
	for (size_t i = 0; i < opts->nr_record; i++)
		free((void *)opts->record[i]);
	free(opts->record);
	*opts = (struct top_opts){0};
}
