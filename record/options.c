/* options.c - the options of mleak record: one table, of which the help is made too */
#include "record/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "format/trace.h"
#include "mleak.h"
#include "record/kernel_options.h"
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
	OPT_FORCE,
	OPT_KERNEL
};

static const struct option_info table[] = {
	{.key = 'p',
	 .name = "pid",
	 .arg = "PID",
	 .help = "watch the running process PID; may be given several times",
	 .group = "What to record"},
	{.key = OPT_FOLLOW,
	 .name = "follow",
	 .help = "record child processes too, and theirs, from their start on"},
	{.key = FILTER_TID,
	 .name = "tid",
	 .arg = "TID",
	 .help = "record only thread TID of the process; may be given several times"},
	{.key = OPT_KERNEL,
	 .name = "kernel",
	 .help = "record what the kernel allocates, for all processes and itself"},
	{.key = 'd',
	 .name = "duration",
	 .arg = "TIME",
	 .help = "stop TIME after the probes are attached: seconds, or with a unit as in 500ms, "
		 "10s, 5m, 1h, 1d"},
	{.key = 'D',
	 .name = "delay",
	 .arg = "TIME",
	 .help = "start to record after TIME; --duration counts from then on"},
	{.key = 'z',
	 .name = "min-size",
	 .arg = "BYTES",
	 .help = "leave out smaller blocks; K, M and G are known"},
	{.key = 'Z', .name = "max-block", .arg = "BYTES", .help = "leave out larger blocks"},
	{.key = 's',
	 .name = "sample",
	 .arg = "N|BYTES",
	 .help = "record one of N allocations; with a unit, as in 512K, one in that many bytes"},
	{.key = FILTER_TRIGGER,
	 .name = "trigger",
	 .arg = "BYTES",
	 .help = "record a thread once it has this many bytes outstanding; SIGUSR1: all threads"},

	{.key = KERNEL_EVENTS,
	 .name = "events",
	 .help = "record each event, not only blocks that live for a second or so",
	 .group = "With --kernel"},
	{.key = KERNEL_PERCPU, .name = "percpu", .help = "record memory for each CPU, too"},
	{.key = KERNEL_OLDER,
	 .name = "older",
	 .arg = "TIME",
	 .help = "record only blocks that live at least so long"},
	{.key = KERNEL_COMM,
	 .name = "comm",
	 .arg = "NAME",
	 .help = "record only what threads with this name allocate"},
	{.key = KERNEL_CGROUP,
	 .name = "cgroup",
	 .arg = "DIR",
	 .help = "record only what threads in the cgroup DIR allocate, as "
		 "/sys/fs/cgroup/system.slice"},
	{.key = KERNEL_CACHE,
	 .name = "cache",
	 .arg = "NAME",
	 .help = "record only objects of this slab cache, as dentry or kmalloc-64"},
	{.key = KERNEL_MAX_BLOCKS,
	 .name = "max-blocks",
	 .arg = "N",
	 .help = "how many blocks may live at a time, 4096 to 8388608 [524288; 100 bytes each]"},

	{.key = 'o',
	 .name = "output",
	 .arg = "FILE",
	 .help = "write the trace to FILE; an existing one is kept as FILE.old [mleak.mlk]",
	 .group = "What the trace keeps"},
	{.key = OPT_MAX_SIZE,
	 .name = "max-size",
	 .arg = "BYTES",
	 .help = "end the recording when the trace has this size; K, M and G are known"},
	{.key = OPT_STACK_SIZE,
	 .name = "stack-size",
	 .arg = "BYTES",
	 .help = "copy at most this much of a stack, 128 to 64K [64K]"},
	{.key = OPT_RAW_STACK,
	 .name = "raw-stack",
	 .help = "keep whole stacks, not only what unwinding may need"},
	{.key = OPT_REDACT,
	 .name = "redact",
	 .help = "keep only what unwinding may need, also of registers and a stack's first 128 "
		 "bytes"},
	{.key = OPT_EMBED,
	 .name = "embed",
	 .arg = "WHAT",
	 .help = "what to keep of programs and libraries: none, unwind, symbols or debug [symbols]",
	 .values = "none unwind symbols debug"},
	{.key = OPT_COMPRESS,
	 .name = "compress",
	 .arg = "LEVEL",
	 .help = "zstd's level, 1 to 19 [1]"},

	{.key = 'O',
	 .name = "obj",
	 .arg = "FILE",
	 .help = "also probe the allocator of FILE, which the process has mapped",
	 .group = "Where the probes are"},
	{.key = OPT_PREFIX,
	 .name = "prefix",
	 .arg = "NAME",
	 .help = "also probe functions whose names begin with this, as je_malloc"},
	{.key = OPT_NO_OPERATORS,
	 .name = "no-operators",
	 .help = "do not probe an allocator's own operator new and delete"},
	{.key = OPT_RETURNS,
	 .name = "returns",
	 .arg = "HOW",
	 .help = "how to see what functions return: probe, ret (slower, never harms), or auto: "
		 "probe where that does no harm [auto]",
	 .values = "auto ret probe"},
	{.key = OPT_UPROBES,
	 .name = "uprobes",
	 .arg = "KIND",
	 .help = "how to attach: auto, multi (Linux 6.6) or perf [auto]",
	 .values = "auto multi perf"},
	{.key = OPT_BACKEND,
	 .name = "backend",
	 .arg = "KIND",
	 .help = "bpf, preload (no privileges, commands only), or auto: bpf where it is allowed "
		 "[auto]",
	 .values = "auto bpf preload"},
	{.key = OPT_RING_SIZE,
	 .name = "ring-size",
	 .arg = "BYTES",
	 .help = "size of the event buffer, 64K to 1G, a power of two [64M]; preload: of each "
		 "thread's, to 64M [512K, of the first 16 threads 4M]"},
	{.key = OPT_ON_FULL,
	 .name = "on-full",
	 .arg = "WHAT",
	 .help = "preload, when a thread's ring is full: drop, block=TIME, or block: 1m at most "
		 "[block]"},
	{.key = OPT_GUARD,
	 .name = "guard",
	 .help = "preload: watch bytes around each block, and report which blocks were overrun"},
	{.key = OPT_FORCE,
	 .name = "force",
	 .help = "try eBPF also on kernels older than those it was tested on"},
	{.key = OPT_DRY_RUN,
	 .name = "dry-run",
	 .help = "show what would be probed, and where; record nothing"},

	{.key = 'h', .name = "help", .help = "print this help", .group = "Other"},
};

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

bool record_option(size_t i, struct option_info *option)
{
	if (i < NR_OPTIONS)
		*option = table[i];
	return i < NR_OPTIONS;
}

void record_options_help(void)
{
	puts("usage: mleak record [OPTIONS] -p PID\n"
	     "       mleak record [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
	     "       mleak record --kernel [OPTIONS]\n\n"
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
static bool set_flag(struct record_opts *o, int key)
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
	case OPT_KERNEL:
		return o->kernel = true;
	case 'h':
		return o->help = true;
	default:
		return false;
	}
}

static int apply_option(void *ctx, const struct option_info *option, const char *text)
{
	struct record_opts *o = ctx;

	if (set_flag(o, option->key))
		return 0;
	switch (option->key) {
	case 'p':
		return option_pid(option, text, o);
	case 'o':
		o->output = text;
		return 0;
	case 'd':
		return option_duration(option, text, &o->duration_ns);
	case OPT_STACK_SIZE:
		return option_stack_size(option, text, &o->stack_limit);
	case OPT_RING_SIZE:
		return option_ring_size(option, text, &o->ring_size);
	case OPT_UPROBES:
		return option_choice(option, text, (int *)&o->link);
	case OPT_RETURNS:
		return option_choice(option, text, (int *)&o->allocators.returns);
	case OPT_EMBED:
		return option_choice(option, text, (int *)&o->embed);
	case OPT_COMPRESS:
		return option_level(option, text, &o->zstd_level);
	case OPT_MAX_SIZE:
		return option_bytes(option, text, 1 << 20, OPTION_MOST_TRACE,
				    "the bytes of a trace, 1M or more", &o->max_size);
	case 'O':
		o->allocators.object = text;
		return 0;
	case OPT_PREFIX:
		return option_prefix(option, text, &o->allocators.prefix);
	case OPT_BACKEND:
		return option_choice(option, text, (int *)&o->backend);
	case OPT_ON_FULL:
		o->on_full = true;
		return option_on_full(option, text, &o->block_ns);
	default:
		if (option->key >= KERNEL_EVENTS) {
			o->kernel_option = option->name;
			return kernel_option(&o->of_kernel, option, text);
		}
		return filters_parse(&o->filters, option, text);
	}
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

/* It has no process, and no probes in any. */
static int check_kernel(const struct record_opts *o)
{
	if (!o->kernel)
		log_error("--%s is for the kernel's memory: give --kernel, too", o->kernel_option);
	else if (o->nr_pids || o->argv)
		log_error("--kernel records the whole machine: leave %s out%s",
			  o->nr_pids ? "-p" : "the command",
			  "; --comm and --cgroup choose processes");
	else if (o->follow || o->guard || o->on_full || o->backend != BACKEND_AUTO || o->dry_run ||
		 o->redact || o->raw_stack || record_options_for_probes(o) ||
		 o->filters.trigger_bytes || o->filters.delay_ns || o->filters.sample_bytes)
		log_error("--kernel goes with --duration, -z, -Z, -s N, --output, --max-size, "
			  "--compress and the options of its own group: leave the others out");
	else
		return 0;
	return -EINVAL;
}

static int check(const struct record_opts *o)
{
	if (o->help)
		return 0;
	if (o->kernel || o->kernel_option)
		return check_kernel(o);
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
	*o = (struct record_opts){.output = "mleak.mlk",
				  .stack_limit = MLK_MAX_STACK,
				  .stack_mode = MLK_STACK_FILTERED,
				  .embed = EMBED_SYMBOLS,
				  .zstd_level = 1,
				  .block_ns = OPTION_BLOCK_NS,
				  .of_kernel = {.probes = {.max_blocks = KERNEL_USUAL_BLOCKS}}};
	/* What follows the command's name is the command's own. */
	if (options_read(record_option, true, argc, argv, apply_option, o))
		return -EINVAL;
	if (optind < argc)
		o->argv = argv + optind;
	if ((o->guard || o->on_full) && !o->nr_pids && o->backend == BACKEND_AUTO)
		o->backend = BACKEND_PRELOAD;
	return check(o);
}
