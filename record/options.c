/* options.c - getopt_long over one table, which also makes the help */
#include "record/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "format/trace.h"
#include "mleak.h"
#include "record/option_values.h"
#include "record/preload/backend.h"

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
	OPT_RETURNS,
	OPT_DRY_RUN,
	OPT_COMPRESS,
	OPT_FOLLOW,
	OPT_BACKEND,
	OPT_ON_FULL,
	OPT_GUARD,
	OPT_FORCE
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
	 "stop after TIME, from when the probes are in: seconds, or with a unit as in 500ms, "
	 "10s, 5m, 1h, 1d"},
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
	 "do not probe operator new and delete of an allocator's own"},
	{OPT_RETURNS, "returns", "HOW",
	 "see what functions return by probe, by ret (slower, never harms), or auto: by probe "
	 "where that does no harm [auto]"},
	{OPT_UPROBES, "uprobes", "KIND", "how to attach: auto, multi (Linux 6.6) or perf [auto]"},
	{OPT_BACKEND, "backend", "KIND",
	 "bpf, preload (no privileges, commands only), or auto: bpf where it is allowed [auto]"},
	{OPT_RING_SIZE, "ring-size", "BYTES",
	 "let so much wait for mleak, 64K to 1G, a power of two [64M]; preload: of each thread, "
	 "to 64M [512K, of the first 16 threads 4M]"},
	{OPT_ON_FULL, "on-full", "WHAT",
	 "preload, when a thread's ring is full: drop, block=TIME, or block: 1m at most [block]"},
	{OPT_GUARD, "guard", NULL,
	 "preload: watch bytes around each block, and tell which blocks were overrun"},
	{OPT_FORCE, "force", NULL,
	 "try eBPF on kernels, too, that are older than all it was proven on"},
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
	{OPT_RETURNS, "auto ret probe"},
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

/* Those that take no value.  False: it is none of them. */
static bool take_flag(struct record_opts *o, int key)
{
	switch (key) {
	case OPT_RAW_STACK:
		o->stack_mode = MLK_STACK_RAW;
		return o->raw_stack = true;
	case OPT_REDACT:
		o->stack_mode = MLK_STACK_REDACTED;
		return o->redact = true;
	case OPT_NO_OPERATORS:
		return o->allocators.no_operators = true;
	case OPT_GUARD:
		return o->guard = true;
	case OPT_FORCE:
		return o->force = true;
	case OPT_DRY_RUN:
		return o->dry_run = true;
	case OPT_FOLLOW:
		return o->follow = true;
	case 'h':
		return o->help = true;
	default:
		return false;
	}
}

static int parse_one(struct record_opts *o, int key)
{
	if (take_flag(o, key))
		return 0;
	switch (key) {
	case 'p':
		return option_pid(optarg, o);
	case 'o':
		o->output = optarg;
		return 0;
	case 'd':
		return option_duration(optarg, &o->duration_ns);
	case OPT_STACK_SIZE:
		return option_stack_size(optarg, &o->stack_limit);
	case OPT_RING_SIZE:
		return option_ring_size(optarg, &o->ring_size);
	case OPT_UPROBES:
		return option_link(optarg, &o->link);
	case OPT_RETURNS:
		return option_returns(optarg, &o->allocators.returns);
	case OPT_EMBED:
		return option_embed(optarg, &o->embed);
	case 'D':
	case 'z':
	case 'Z':
	case 's':
	case FILTER_TID:
	case FILTER_TRIGGER:
		return filters_parse(&o->filters, key, optarg);
	case OPT_COMPRESS:
		return option_level(optarg, &o->zstd_level);
	case OPT_MAX_SIZE:
		return option_max_size(optarg, &o->max_size);
	case 'O':
		o->allocators.object = optarg;
		return 0;
	case OPT_PREFIX:
		return option_prefix(optarg, &o->allocators.prefix);
	case OPT_BACKEND:
		return option_backend(optarg, &o->backend);
	case OPT_ON_FULL:
		o->on_full = true;
		return option_on_full(optarg, &o->block_ns);
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

const char *record_options_for_probes(const struct record_opts *o)
{
	if (filters_check_preload(&o->filters, false))
		return "the choice of threads";
	if (o->allocators.object)
		return "-O";
	if (o->allocators.prefix)
		return "--prefix";
	if (o->allocators.no_operators)
		return "--no-operators";
	if (o->link != PROBE_LINK_AUTO)
		return "--uprobes";
	if (o->allocators.returns != RETURNS_AUTO)
		return "--returns";
	return o->ring_size > PRELOAD_MOST_RING ? "--ring-size above 64M" : NULL;
}

/* What only probes can do is not asked of the library. */
static int check_preload(const struct record_opts *o)
{
	if (o->nr_pids)
		log_error("--backend preload cannot attach to a running process: start the command "
			  "with it, or use eBPF as root");
	else if (filters_check_preload(&o->filters, true))
		return -EINVAL;
	else if (o->allocators.no_operators)
		log_error("--backend preload has no probes that an exception could not get past: "
			  "leave --no-operators out, or use eBPF as root");
	else if (o->allocators.returns != RETURNS_AUTO)
		log_error("--backend preload needs no probes to see returns: leave --returns out, "
			  "or use eBPF as root");
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

/* Guard bytes are put by the library alone. */
static int check_guard(const struct record_opts *o)
{
	if (o->backend == BACKEND_BPF)
		log_error(
			"--guard needs the preloaded library, which puts bytes around each block: "
			"leave --backend bpf out");
	else if (o->nr_pids)
		log_error("--guard is for a command that mleak starts: the blocks of a running "
			  "process have no guard bytes");
	else if (o->dry_run)
		log_error("--guard puts in no probes that --dry-run could show");
	else
		return 0;
	return -EINVAL;
}

/* Probes drop what finds the ring full, and never hold a thread up. */
static int check_on_full(const struct record_opts *o)
{
	if (o->backend == BACKEND_PRELOAD && !o->nr_pids)
		return 0;
	log_error("--on-full is for the rings of the preloaded library, by which a command is "
		  "recorded: leave it out%s",
		  o->nr_pids ? "" : ", or --backend bpf");
	return -EINVAL;
}

static int check(const struct record_opts *o)
{
	if (o->help)
		return 0;
	if (o->redact && o->raw_stack) {
		log_error("--redact keeps the least of a stack and --raw-stack all of it: give one "
			  "of them");
		return -EINVAL;
	}
	if (o->guard && check_guard(o))
		return -EINVAL;
	if (o->on_full && check_on_full(o))
		return -EINVAL;
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
				  .block_ns = OPTION_BLOCK_NS};
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
	if ((o->guard || o->on_full) && !o->nr_pids && o->backend == BACKEND_AUTO)
		o->backend = BACKEND_PRELOAD;
	return check(o);
}
