/* options.c - getopt_long over one table, which also makes the help */
#include "record/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/trace.h"
#include "mleak.h"
#include "record/preload_backend.h"
#include "record/units.h"

#define BLOCK_NS 1000000000u /* how long a full ring holds a thread up, if not told */

enum {
	OPT_STACK_SIZE = 256,
	OPT_RING_SIZE,
	OPT_UPROBES,
	OPT_RAW_STACK,
	OPT_REDACT,
	OPT_EMBED,
	OPT_MAX_SIZE,
	OPT_PREFIX,
	OPT_NO_OPERATORS,
	OPT_DRY_RUN,
	OPT_COMPRESS,
	OPT_FOLLOW,
	OPT_BACKEND,
	OPT_ON_FULL
};

static const struct option_help {
	int key;
	const char *name, *arg, *help;
} table[] = {
	{'p', "pid", "PID", "watch the running process PID; may be given several times"},
	{OPT_FOLLOW, "follow", NULL, "record child processes too, and theirs, from their start on"},
	{FILTER_TID, "tid", "TID",
	 "record only thread TID of the process; may be given several times"},
	{'d', "duration", "TIME",
	 "stop after TIME: seconds, or with a unit as in 500ms, 10s, 5m, 1h"},
	{'D', "delay", "TIME", "begin to record after TIME, from which on --duration counts"},
	{'z', "min-size", "BYTES", "leave out smaller blocks; K, M and G are known"},
	{'Z', "max-block", "BYTES", "leave out larger blocks"},
	{'s', "sample", "N|BYTES",
	 "record one of N allocations, or with a unit, as in 512K, one in so many bytes"},
	{FILTER_TRIGGER, "trigger", "BYTES",
	 "record a thread from when it has so many bytes outstanding; SIGUSR1: all of them"},

	{'o', "output", "FILE",
	 "write the trace to FILE; one that is there is kept as FILE.old [mleak.mlk]"},
	{OPT_MAX_SIZE, "max-size", "BYTES",
	 "end the recording when the trace has this size; K, M and G are known"},
	{OPT_STACK_SIZE, "stack-size", "BYTES",
	 "take at most so much of a stack, 128 to 64K [64K]"},
	{OPT_RAW_STACK, "raw-stack", NULL,
	 "keep stacks as they are, not only what unwinding may need"},
	{OPT_REDACT, "redact", NULL,
	 "keep only what unwinding may need, of registers and of a stack's first 128 bytes too"},
	{OPT_EMBED, "embed", "WHAT",
	 "of programs and libraries keep none, unwind, symbols or debug [symbols]"},
	{OPT_COMPRESS, "compress", "LEVEL", "zstd's level, 1 to 19 [1]"},

	{'O', "obj", "FILE", "probe the allocator of FILE too, which the process has mapped"},
	{OPT_PREFIX, "prefix", "NAME", "probe functions whose names begin so too, as in je_malloc"},
	{OPT_NO_OPERATORS, "no-operators", NULL,
	 "do not probe an allocator's own operator new: if it throws, a probed one aborts"},
	{OPT_UPROBES, "uprobes", "KIND", "how to attach: auto, multi (Linux 6.6) or perf [auto]"},
	{OPT_BACKEND, "backend", "KIND",
	 "bpf, preload (no privileges, commands only), or auto: bpf where it is allowed [auto]"},
	{OPT_RING_SIZE, "ring-size", "BYTES",
	 "let so much wait for mleak, 64K to 1G, a power of two [64M]; preload: of each thread, "
	 "to 64M [512K]"},
	{OPT_ON_FULL, "on-full", "WHAT",
	 "preload, when a thread's ring is full: drop, block=TIME, or block: 1s at most [block]"},
	{OPT_DRY_RUN, "dry-run", NULL, "show what would be probed, and where; record nothing"},

	{'h', "help", NULL, "print this help"},
};

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

/* Of options that take one of few values: all of them. */
static const struct {
	int key;
	const char *values;
} choices[] = {
	{OPT_EMBED, "none unwind symbols debug"},
	{OPT_UPROBES, "auto multi perf"},
	{OPT_BACKEND, "auto bpf preload"},
};

/* Of the options that begin a group of the help: its heading. */
static const struct {
	int key;
	const char *heading;
} groups[] = {
	{'p', "What to record"},
	{'o', "What the trace keeps"},
	{'O', "Where the probes are"},
	{'h', "Other"},
};

bool record_option(size_t i, struct option_info *option)
{
	if (i >= NR_OPTIONS)
		return false;
	*option = (struct option_info){
		.letter = table[i].key < 256 ? table[i].key : 0,
		.name = table[i].name,
		.arg = table[i].arg,
		.help = table[i].help,
	};
	for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++)
		if (choices[c].key == table[i].key)
			option->values = choices[c].values;
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		if (groups[g].key == table[i].key)
			option->group = groups[g].heading;
	return true;
}

void record_options_help(void)
{
	puts("usage: mleak record [OPTIONS] -p PID\n"
	     "       mleak record [OPTIONS] [--] COMMAND [ARGUMENTS]\n\n"
	     "Watches the allocations of a running process, or of a command from its first one "
	     "on,\n"
	     "and writes them to a trace. ^C, the target's end or --duration ends the recording.\n"
	     "With eBPF it needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; a command is\n"
	     "recorded without them too, by a preloaded library.\n");
	print_options(record_option);
	puts("\nThe exit status is that of COMMAND; 126 or 127 when it cannot be started; 125 when "
	     "mleak\n"
	     "itself fails.");
}

static int parse_pid(const char *text, struct record_opts *o)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || value <= 0 || value > INT_MAX) {
		log_error("'%s' is no process id: give a number, as 'ps -e' shows it", text);
		return -EINVAL;
	}
	if (o->nr_pids == RECORD_MAX_PIDS) {
		log_error("too many processes: give at most %d with -p", RECORD_MAX_PIDS);
		return -EINVAL;
	}
	o->pids[o->nr_pids++] = (pid_t)value;
	return 0;
}

static int parse_duration(const char *text, uint64_t *ns)
{
	if (units_time(text, ns))
		return 0;
	log_error("'%s' is no time: give seconds, or a number with ms, s, m or h", text);
	return -EINVAL;
}

static int parse_stack_size(const char *text, uint32_t *bytes)
{
	uint64_t value;

	if (units_bytes(text, MLK_MAX_STACK, &value) && value >= 128) {
		*bytes = (uint32_t)value;
		return 0;
	}
	log_error("'%s' is no stack size: give bytes, from 128 to 64K", text);
	return -EINVAL;
}

static int parse_ring_size(const char *text, uint32_t *bytes)
{
	uint64_t value;

	if (units_bytes(text, 1 << 30, &value) && value >= 1 << 16 && !(value & (value - 1))) {
		*bytes = (uint32_t)value;
		return 0;
	}
	log_error("'%s' is no size for the ring: give a power of two from 64K to 1G, as in 16M",
		  text);
	return -EINVAL;
}

static int parse_max_size(const char *text, uint64_t *bytes)
{
	if (units_bytes(text, 1ull << 50, bytes) && *bytes >= 1 << 20)
		return 0;
	log_error("'%s' is no size for a trace: give 1M or more", text);
	return -EINVAL;
}

static int parse_level(const char *text, int *level)
{
	uint64_t value;

	if (units_bytes(text, 19, &value) && value) {
		*level = (int)value;
		return 0;
	}
	log_error("'%s' is no compression level: give 1 to 19", text);
	return -EINVAL;
}

/* The index of @text among @nr names.  -EINVAL, after one sentence that calls it @what. */
static int parse_name(const char *text, const char *const *names, int nr, const char *what)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(text, names[i]))
			return i;
	log_error("'%s' is no %s; 'mleak record --help' lists them", text, what);
	return -EINVAL;
}

static int parse_link(const char *text, enum probe_link *link)
{
	static const char *const names[] = {"auto", "multi", "perf"};
	int found = parse_name(text, names, 3, "kind of uprobes");

	*link = found < 0 ? PROBE_LINK_AUTO : (enum probe_link)found;
	return found < 0 ? found : 0;
}

static int parse_embed(const char *text, enum module_embed *embed)
{
	static const char *const names[] = {"none", "unwind", "symbols", "debug"};
	int found = parse_name(text, names, 4, "thing to embed");

	*embed = found < 0 ? EMBED_SYMBOLS : (enum module_embed)found;
	return found < 0 ? found : 0;
}

static int parse_backend(const char *text, enum record_backend *backend)
{
	static const char *const names[] = {"auto", "bpf", "preload"};
	int found = parse_name(text, names, 3, "backend");

	*backend = found < 0 ? BACKEND_AUTO : (enum record_backend)found;
	return found < 0 ? found : 0;
}

static int parse_on_full(const char *text, uint64_t *block_ns)
{
	*block_ns = 0;
	if (!strcmp(text, "drop"))
		return 0;
	*block_ns = BLOCK_NS;
	if (!strcmp(text, "block"))
		return 0;
	if (!strncmp(text, "block=", 6))
		return parse_duration(text + 6, block_ns);
	log_error("'%s' is nothing to do with a full ring: give drop, block or block=TIME", text);
	return -EINVAL;
}

static int parse_prefix(const char *text, const char **prefix)
{
	*prefix = text;
	if (*text && strlen(text) < 32)
		return 0;
	log_error("'%s' is no prefix of function names: give 1 to 31 characters", text);
	return -EINVAL;
}

static int parse_one(struct record_opts *o, int key)
{
	switch (key) {
	case 'p':
		return parse_pid(optarg, o);
	case 'o':
		o->output = optarg;
		return 0;
	case 'd':
		return parse_duration(optarg, &o->duration_ns);
	case OPT_STACK_SIZE:
		return parse_stack_size(optarg, &o->stack_limit);
	case OPT_RING_SIZE:
		return parse_ring_size(optarg, &o->ring_size);
	case OPT_UPROBES:
		return parse_link(optarg, &o->link);
	case OPT_RAW_STACK:
		o->stack_mode = MLK_STACK_RAW;
		return 0;
	case OPT_REDACT:
		o->stack_mode = MLK_STACK_REDACTED;
		return 0;
	case OPT_EMBED:
		return parse_embed(optarg, &o->embed);
	case 'D':
	case 'z':
	case 'Z':
	case 's':
	case FILTER_TID:
	case FILTER_TRIGGER:
		return filters_parse(&o->filters, key, optarg);
	case OPT_COMPRESS:
		return parse_level(optarg, &o->zstd_level);
	case OPT_MAX_SIZE:
		return parse_max_size(optarg, &o->max_size);
	case 'O':
		o->allocators.object = optarg;
		return 0;
	case OPT_PREFIX:
		return parse_prefix(optarg, &o->allocators.prefix);
	case OPT_NO_OPERATORS:
		o->allocators.no_operators = true;
		return 0;
	case OPT_BACKEND:
		return parse_backend(optarg, &o->backend);
	case OPT_ON_FULL:
		return parse_on_full(optarg, &o->block_ns);
	case OPT_DRY_RUN:
		o->dry_run = true;
		return 0;
	case OPT_FOLLOW:
		o->follow = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	default:
		return -EINVAL;
	}
}

/* What getopt_long() stumbled over, in one sentence. */
static void explain(int key, char **argv)
{
	if (key == ':')
		log_error("option '%s' needs a value; 'mleak record --help' lists the options",
			  argv[optind - 1]);
	else
		log_error("'%s' is no option; 'mleak record --help' lists them", argv[optind - 1]);
}

/* What only probes can do is not asked of the library. */
static int check_preload(const struct record_opts *o)
{
	if (o->nr_pids)
		log_error("--backend preload cannot attach to a running process: start the command "
			  "with it, or use eBPF as root");
	else if (o->follow)
		log_error("--backend preload records the command alone, not its children: leave "
			  "--follow out, or use eBPF as root");
	else if (filters_check_preload(&o->filters, true))
		return -EINVAL;
	else if (o->allocators.object || o->allocators.prefix || o->link != PROBE_LINK_AUTO ||
		 o->dry_run)
		log_error("--backend preload has no probes to choose or show: leave -O, --prefix, "
			  "--uprobes and --dry-run out, or use eBPF as root");
	else if (o->ring_size > PRELOAD_MOST_RING)
		log_error("--backend preload has a ring for each thread: give --ring-size from 64K "
			  "to 64M");
	else
		return 0;
	return -EINVAL;
}

static int check(const struct record_opts *o)
{
	if (o->help)
		return 0;
	if (o->backend == BACKEND_PRELOAD && check_preload(o))
		return -EINVAL;
	if ((o->nr_pids != 0) != (o->argv != NULL))
		return filters_check(&o->filters, o->pids, o->nr_pids);
	if (o->nr_pids)
		log_error("give either -p PID or a command to start, not both");
	else
		log_error("nothing to record: give -p PID, or a command to start after --");
	return -EINVAL;
}

int record_options_parse(struct record_opts *o, int argc, char **argv)
{
	struct option longs[NR_OPTIONS + 1] = {0};
	int key;

	*o = (struct record_opts){.output = "mleak.mlk",
				  .stack_limit = MLK_MAX_STACK,
				  .stack_mode = MLK_STACK_FILTERED,
				  .embed = EMBED_SYMBOLS,
				  .zstd_level = 1,
				  .block_ns = BLOCK_NS};
	for (size_t i = 0; i < NR_OPTIONS; i++)
		longs[i] =
			(struct option){.name = table[i].name,
					.has_arg = table[i].arg ? required_argument : no_argument,
					.val = table[i].key};
	opterr = 0;
	/* '+': what follows the command's name is the command's own. */
	while ((key = getopt_long(argc, argv, "+:p:o:d:D:z:Z:s:O:h", longs, NULL)) != -1) {
		if (key == '?' || key == ':') {
			explain(key, argv);
			return -EINVAL;
		}
		if (parse_one(o, key))
			return -EINVAL;
	}
	if (optind < argc)
		o->argv = argv + optind;
	return check(o);
}
