/* option_checks.c - options of mleak record that do not go together, and those that only probes
 * obey */
#include <errno.h>
#include <string.h>

#include "cmdline/trace_name.h"
#include "mleak.h"
#include "record/options.h"
#include "record/preload/backend.h"

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

/* The code in a process that runs already records that one alone, and all its threads. */
static int check_inject(const struct record_opts *o)
{
	if (o->nr_pids != 1)
		log_error("--backend inject puts code into one process that runs: give -p PID; a "
			  "command is recorded with --backend preload");
	else if (o->follow)
		log_error("--backend inject does not follow children, in which the code only "
			  "forwards calls: leave --follow out, or use eBPF as root");
	else if (filters_by_thread(&o->filters))
		log_error(
			"--backend inject records all threads from the start: leave the choice of "
			"threads and --trigger out, or use eBPF as root");
	else if (o->link != PROBE_LINK_AUTO || o->allocators.returns != RETURNS_AUTO)
		log_error("--backend inject has no probes: leave --uprobes and --returns out");
	else if (o->ring_size > PRELOAD_MOST_RING)
		log_error("--backend inject has a ring for each thread: give --ring-size from 64K "
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
	if ((o->backend == BACKEND_PRELOAD && !o->nr_pids) || o->backend == BACKEND_INJECT)
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
		log_error("--kernel records the whole machine: leave %s out; --comm and --cgroup "
			  "choose processes",
			  o->nr_pids ? "-p" : "the command");
	else if (o->follow || o->guard || o->on_full || o->backend != BACKEND_AUTO || o->dry_run ||
		 o->redact || o->raw_stack || o->reach || o->passes || o->ring_size || o->force ||
		 o->embed != EMBED_SYMBOLS || record_options_for_probes(o) || o->filters.delay_ns ||
		 o->filters.sample_bytes)
		log_error("--kernel goes with --duration, -z, -Z, -s N, --output, --quiet, "
			  "--max-size, --switch-output, --keep, --compress and the options of its "
			  "own group: leave the others out");
	else if (o->of_kernel.probes.user_stacks && o->of_kernel.older_ns)
		log_error("--user-stacks does not go with --older, for which they would have to be "
			  "kept long: leave --older out; 'mleak report --older' does it");
	else
		return 0;
	return -EINVAL;
}

/* Several traces need several files. */
static int check_several(const struct record_opts *o)
{
	if (!strcmp(o->output.name, "-"))
		log_error("--switch-output makes several files, and -o - is a single pipe: give "
			  "the name of a file");
	else if (o->max_size)
		log_error("--switch-output begins another trace where --max-size ends the "
			  "recording: give one of them; --keep limits how many there are");
	else
		return 0;
	return -EINVAL;
}

/* One trace of a process, in a file, can be unwound when the recording has ended. */
static int check_unwind(const struct record_opts *o)
{
	if (!o->unwind)
		log_error(
			"--drop-raw leaves out what stacks were unwound from: give --unwind, too");
	else if (o->kernel)
		log_error("--unwind is for traces of processes, and --kernel records stacks that "
			  "need no unwinding: leave it out");
	else if (!strcmp(o->output.name, "-"))
		log_error("--unwind writes the trace again, which a pipe does not keep: give the "
			  "name of a file with -o");
	else if (o->several.on)
		log_error("--unwind is for one trace, and --switch-output makes several: use "
			  "'mleak unwind' for each");
	else
		return 0;
	return -EINVAL;
}

int record_options_check(const struct record_opts *o)
{
	if (o->help)
		return 0;
	if (trace_name_check(o->output.name, !o->kernel, o->several.on))
		return -EINVAL;
	if (o->several.on && check_several(o))
		return -EINVAL;
	if (o->several.keep && !o->several.on) {
		log_error("--keep is for the traces of --switch-output: give that, too");
		return -EINVAL;
	}
	if ((o->unwind || o->drop_raw) && check_unwind(o))
		return -EINVAL;
	if (o->kernel || o->kernel_option)
		return check_kernel(o);
	if (o->passes && !o->reach) {
		log_error("--passes says how often --reach reads the memory: give --reach, too");
		return -EINVAL;
	}
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
	if (o->backend == BACKEND_INJECT && check_inject(o))
		return -EINVAL;
	if ((o->nr_pids != 0) != (o->argv != NULL))
		return filters_check(&o->filters, o->pids, o->nr_pids);
	if (o->nr_pids)
		log_error("give either -p PID or a command to start, not both");
	else
		log_error("nothing to record: give -p PID, or a command to start after --");
	return -EINVAL;
}
