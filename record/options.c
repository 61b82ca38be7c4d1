/* options.c - the options of mleak record: one table, of which the help is made too */
#include "record/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmdline/values.h"
#include "format/trace.h"
#include "record/kernel_options.h"
#include "record/option_values.h"

/* How long a full ring holds a thread up that the recorder does not empty, if no time is given. */
#define USUAL_BLOCK_NS 60000000000ull

/* Options hold the index of a word as what their enum has there. */
_Static_assert(PROBE_LINK_AUTO == 0 && PROBE_LINK_MULTI == 1 && PROBE_LINK_PERF == 2 &&
		       RETURNS_AUTO == 0 && BACKEND_AUTO == 0 && BACKEND_BPF == 1 &&
		       sizeof(enum probe_link) == sizeof(int),
	       "the words of the table are in the order of these");

enum {
	OPT_STACK_SIZE = 256,
	OPT_RING_SIZE,
	OPT_UPROBES,
	OPT_RAW_STACK,
	OPT_REDACT,
	OPT_EMBED,
	OPT_MAX_SIZE,
	OPT_SWITCH,
	OPT_KEEP,
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
	OPT_KERNEL,
	OPT_REACH,
	OPT_PASSES,
	OPT_UNWIND,
	OPT_DROP_RAW,
	OPT_NO_CACHE
};

static const struct option_info table[] = {
	{.key = 'p',
	 .name = "pid",
	 .arg = "PID",
	 .help = "watch the running process PID: its number or name, or several with commas "
		 "between",
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
	 .arg = "BYTES|KIND:BYTES",
	 .help = "record a thread once it has this many bytes outstanding, with process: in front "
		 "a "
		 "process, with site: what is allocated for one return address; may be repeated "
		 "for "
		 "each; SIGUSR1: all threads"},
	{.key = FILTER_CHOOSE,
	 .name = "choose",
	 .arg = "MODE",
	 .help = "have 'mleak ctl' choose threads, processes and call sites; until then all is "
		 "recorded, or only counted",
	 .values = "recorded counted"},

	{.key = KERNEL_EVENTS,
	 .name = "events",
	 .help = "record each event, not only blocks that live for some seconds",
	 .group = "With --kernel"},
	{.key = KERNEL_PERCPU, .name = "percpu", .help = "record memory for each CPU, too"},
	{.key = KERNEL_USER_STACKS,
	 .name = "user-stacks",
	 .help = "record the stacks of the programs for which the kernel allocates, too"},
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
	 .help = "how many blocks may live at a time, 4096 to 8388608 [524288; 128 bytes each or "
		 "more]"},

	{.key = 'o',
	 .name = "output",
	 .arg = "FILE",
	 .help = "write the trace to FILE, where %p is the process, %h the host, %t the time; or "
		 "to a "
		 "pipe: - [mleak.mlk]",
	 .group = "What the trace keeps"},
	{.key = OPT_MAX_SIZE,
	 .name = "max-size",
	 .arg = "BYTES",
	 .help = "end the recording when the trace has this size; K, M and G are known"},
	{.key = OPT_SWITCH,
	 .name = "switch-output",
	 .arg = "SIZE|TIME",
	 .help = "begin another trace, FILE.2 after FILE.1, at this size (100M) or after this "
		 "time (10m), or by SIGUSR2 alone: signal"},
	{.key = OPT_KEEP,
	 .name = "keep",
	 .arg = "N",
	 .help = "with --switch-output: keep only the N newest traces"},
	{.key = OPT_UNWIND,
	 .name = "unwind",
	 .help = "when the recording has ended, unwind the trace as 'mleak unwind' does: reports "
		 "then take half as long"},
	{.key = OPT_DROP_RAW,
	 .name = "drop-raw",
	 .help = "with --unwind: do not keep registers and stacks; the trace is small then"},
	{.key = OPT_NO_CACHE,
	 .name = "no-cache",
	 .help = "do not write FILE.stacks, which makes the first report of a large trace faster"},
	{.key = OPT_REACH,
	 .name = "reach",
	 .arg = "[=TIME|stop]",
	 .help = "at the end, and each TIME, record the pointers in memory: they tell what is "
		 "lost; stop: the process stands still meanwhile"},
	{.key = OPT_PASSES,
	 .name = "passes",
	 .arg = "N",
	 .help = "with --reach: how often memory is read, 1 to 99; pointers may move [3 to 10, as "
		 "they do]"},
	{.key = OPT_STACK_SIZE,
	 .name = "stack-size",
	 .arg = "BYTES",
	 .help = "copy at most this much of a stack, 128 to 64K [64K]"},
	{.key = OPT_RAW_STACK,
	 .name = "raw-stack",
	 .help = "keep whole stacks, not only what unwinding may need"},
	{.key = OPT_REDACT,
	 .name = "redact",
	 .arg = "[=names]",
	 .help = "keep only what unwinding may need, also of registers and a stack's first 128 "
		 "bytes; names: and no file names in names of generated code"},
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
	 .help = "also probe the allocator of FILE, which the process has mapped; the file's name "
		 "will do",
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
	 .help = "bpf, preload (no privileges, commands only), inject (-p only: puts code "
		 "into the process), or auto: bpf where it is allowed [auto]",
	 .values = "auto bpf preload inject"},
	{.key = OPT_RING_SIZE,
	 .name = "ring-size",
	 .arg = "BYTES",
	 .help = "size of the event buffer, a power of two from 64K to 1G [64M]. preload: that of "
		 "each thread, up to 64M [512K, of the first 16 threads 4M]"},
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

	{.key = 'q', .name = "quiet", .help = "print only warnings and errors", .group = "Other"},
	{.key = 'h', .name = "help", .help = "print this help"},
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

static int read_stack_size(const struct option_info *option, const char *text, uint32_t *bytes)
{
	uint64_t value = 0;
	int err = option_bytes(option, text, 128, MLK_MAX_STACK, "bytes from 128 to 64K", &value);

	*bytes = (uint32_t)value;
	return err;
}

static int read_ring_size(const struct option_info *option, const char *text, uint32_t *bytes)
{
	static const char wanted[] = "a power of two from 64K to 1G, as 16M";
	uint64_t value = 0;
	int err = option_bytes(option, text, 1 << 16, 1 << 30, wanted, &value);

	*bytes = (uint32_t)value;
	return !err && value & (value - 1) ? option_refuse(option, wanted, text) : err;
}

static int read_level(const struct option_info *option, const char *text, int *level)
{
	uint64_t value = 0;
	int err = option_number(option, text, 1, 19, "a number from 1 to 19", &value);

	*level = (int)value;
	return err;
}

/* The index of one of few words. */
static int read_choice(const struct option_info *option, const char *text, int *choice)
{
	*choice = option_word(option, text);
	return *choice < 0 ? *choice : 0;
}

/* How long a full ring of the preloaded library holds a thread up; 0: not at all. */
static int read_on_full(const struct option_info *option, const char *text, uint64_t *block_ns)
{
	*block_ns = 0;
	if (!strcmp(text, "drop"))
		return 0;
	*block_ns = USUAL_BLOCK_NS;
	if (!strcmp(text, "block"))
		return 0;
	if (!strncmp(text, "block=", 6))
		return option_duration(option, text + 6, block_ns);
	return option_refuse(option, "drop, block or block=TIME", text);
}

static int read_prefix(const struct option_info *option, const char *text, const char **prefix)
{
	*prefix = text;
	if (*text && strlen(text) < 32)
		return 0;
	return option_refuse(option, "1 to 31 characters, with which names of functions begin",
			     text);
}

/* Those that take no value.  False: it is none of them. */
static bool set_flag(struct record_opts *o, int key)
{
	switch (key) {
	case OPT_RAW_STACK:
		o->stack_mode = MLK_STACK_RAW;
		return o->raw_stack = true;
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
	case OPT_UNWIND:
		return o->unwind = true;
	case OPT_DROP_RAW:
		return o->drop_raw = true;
	case OPT_NO_CACHE:
		return o->no_cache = true;
	case 'q':
		return o->quiet = true;
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
		return pids_read(option, text, o->pids, &o->nr_pids);
	case 'o':
		o->output.name = text;
		return 0;
	case 'd':
		return option_duration(option, text, &o->duration_ns);
	case OPT_STACK_SIZE:
		return read_stack_size(option, text, &o->stack_limit);
	case OPT_RING_SIZE:
		return read_ring_size(option, text, &o->ring_size);
	case OPT_UPROBES:
		return read_choice(option, text, (int *)&o->link);
	case OPT_RETURNS:
		return read_choice(option, text, (int *)&o->allocators.returns);
	case OPT_EMBED:
		return read_choice(option, text, (int *)&o->embed);
	case OPT_COMPRESS:
		return read_level(option, text, &o->zstd_level);
	case OPT_MAX_SIZE:
		return option_bytes(option, text, 1 << 20, OPTION_MOST_TRACE,
				    "the bytes of a trace, 1M or more", &o->max_size);
	case OPT_SWITCH:
		return option_switch(option, text, &o->several);
	case OPT_REACH:
		return option_reach(option, text, o);
	case OPT_REDACT:
		return option_redact(option, text, o);
	case OPT_PASSES:
		return option_number(option, text, 1, 99, NULL, &o->passes);
	case OPT_KEEP:
		return option_number(option, text, 1, UINT32_MAX, NULL, &o->several.keep);
	case 'O':
		o->allocators.object = text;
		return 0;
	case OPT_PREFIX:
		return read_prefix(option, text, &o->allocators.prefix);
	case OPT_BACKEND:
		return read_choice(option, text, (int *)&o->backend);
	case OPT_ON_FULL:
		o->on_full = true;
		return read_on_full(option, text, &o->block_ns);
	default:
		if (option->key >= KERNEL_EVENTS) {
			o->kernel_option = option->name;
			return kernel_option(&o->of_kernel, option, text);
		}
		return filters_parse(&o->filters, option, text);
	}
}

int record_options_parse(struct record_opts *o, int argc, char **argv)
{
	*o = (struct record_opts){.output = {"mleak.mlk", -1, -1},
				  .stack_limit = MLK_MAX_STACK,
				  .stack_mode = MLK_STACK_FILTERED,
				  .embed = EMBED_SYMBOLS,
				  .zstd_level = 1,
				  .block_ns = USUAL_BLOCK_NS,
				  .of_kernel = {.probes = {.max_blocks = KERNEL_USUAL_BLOCKS}}};
	/* What follows the command's name is the command's own. */
	if (options_read(record_option, true, argc, argv, apply_option, o))
		return -EINVAL;
	if (optind < argc)
		o->argv = argv + optind;
	if ((o->guard || o->on_full) && !o->nr_pids && o->backend == BACKEND_AUTO)
		o->backend = BACKEND_PRELOAD;
	return record_options_check(o);
}
