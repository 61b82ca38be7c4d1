/* kernel_record.c - see kernel_record.h */
#include "record/kernel_record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "format/trace.h"
#include "format/writer.h"
#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/kernel/kallsyms.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/kernel_memory.h"
#include "record/kernel/kernel_origins.h"
#include "record/kernel/kernel_stacks.h"
#include "record/kernel_trace.h"
#include "record/privilege/privileges.h"
#include "record/signals.h"
#include "record/trace/write_failed.h"

#define CONSUME_MS 100
#define USERS_MS   20	       /* where copies of user space wait to be written */
#define SOON_MS	   5	       /* while stacks are new */
#define LOOK_NS	   5000000000u /* a block that lives shorter may not be seen */

static int explain_names(int err)
{
	if (err == -EACCES)
		log_error("cannot record the kernel's memory: /proc/kallsyms shows no addresses "
			  "(kernel.kptr_restrict is 2, or CAP_SYSLOG is missing)");
	else
		log_error("cannot record the kernel's memory: cannot read /proc/kallsyms: %s",
			  strerror(-err));
	return err;
}

/* The programs come first: kallsyms names them, too. */
static int attach(struct kernel_recording *r)
{
	int err = kallsyms_are_shown() ? 0 : -EACCES;

	if (err)
		return explain_names(err);
	if (r->opts->probes.user_stacks && !privileges_has(CAP_SYS_PTRACE)) {
		log_error("cannot record stacks of user space: to see what other processes have "
			  "mapped takes root, or CAP_SYS_PTRACE; or leave --user-stacks out");
		return -EPERM;
	}
	err = kmem_probes_attach(&r->probes, &r->opts->probes);
	if (err)
		return err;
	err = kallsyms_read(&r->names);
	if (err)
		return explain_names(err);
	err = kernel_stacks_new(&r->stacks, r->probes, r->names, r->opts->probes.user_stacks);
	if (err)
		log_error("cannot record the kernel's memory: %s", strerror(-err));
	return err;
}

static int begin(struct kernel_recording *r)
{
	int err = kernel_origins_new(&r->origins, r->probes, r->writer);
	const struct kernel_events_opts opts = {.probes = r->probes,
						.stacks = r->stacks,
						.names = r->names,
						.writer = r->writer,
						.origins = r->origins,
						.cache = r->opts->cache,
						.older_ns = r->opts->older_ns,
						.all = r->opts->probes.all_events,
						.user_stacks = r->opts->probes.user_stacks};

	if (!err)
		err = kernel_events_new(&r->events, &opts);
	if (err)
		return err;
	kmem_probes_arm(r->probes, true);
	if (isatty(STDERR_FILENO))
		log_info("recording the kernel's memory%s",
			 r->opts->duration_ns ? "" : "; ^C ends it");
	return 0;
}

static void wait_a_little(struct kernel_recording *r, int signals)
{
	struct pollfd any = {.fd = signals, .events = POLLIN};
	struct signalfd_siginfo info;
	int ms = r->opts->probes.user_stacks ? USERS_MS : CONSUME_MS;

	if (poll(&any, 1, kernel_events_are_new(r->events) ? SOON_MS : ms) <= 0 ||
	    read(signals, &info, sizeof(info)) <= 0)
		return;
	if (info.ssi_signo == SIGUSR2)
		r->switcher.due = r->opts->several.on;
	else if (info.ssi_signo != SIGUSR1)
		r->reason = MLK_END_SIGNAL;
}

/* Begin another trace if that is due.  Returns 0 or an error. */
static int switch_if_due(struct kernel_recording *r, uint64_t now_ns)
{
	if (!r->reason && switch_is_due(&r->switcher, mlk_writer_bytes(r->writer), now_ns))
		switch_now(&r->switcher, switch_reason(&r->switcher, now_ns));
	return r->err;
}

static int run(struct kernel_recording *r, int signals)
{
	uint64_t now_ns = clock_now_ns(), next_ns = now_ns + LOOK_NS;
	uint64_t end_ns = r->opts->duration_ns ? now_ns + r->opts->duration_ns : UINT64_MAX;
	int err = kernel_memory_sample(&r->memory, r->writer, now_ns);

	while (!err && !r->reason) {
		wait_a_little(r, signals);
		err = kernel_events_consume(r->events);
		now_ns = clock_now_ns();
		if (!err)
			err = kernel_memory_sample(&r->memory, r->writer, now_ns);
		if (!err && (now_ns >= next_ns || kmem_probes_are_crowded(r->probes) ||
			     kernel_events_are_many(r->events))) {
			err = kernel_trace_look(r);
			next_ns = now_ns + LOOK_NS;
		}
		if (now_ns >= end_ns)
			r->reason = MLK_END_DURATION;
		if (r->opts->max_size && mlk_writer_bytes(r->writer) >= r->opts->max_size)
			r->reason = MLK_END_SIZE;
		if (!err)
			err = switch_if_due(r, now_ns);
	}
	return err;
}

static int finish(struct kernel_recording *r)
{
	int err;

	kmem_probes_arm(r->probes, false);
	err = kernel_events_finish(r->events);
	if (!err)
		err = kernel_memory_finish(&r->memory, r->writer);
	if (!err)
		err = kernel_trace_note_losses(r);
	/* who reads it as it is written has all names but those of what entered the kernel */
	if (!err && (r->opts->output.told < 0 || r->opts->probes.user_stacks))
		err = kernel_stacks_write(r->stacks, r->writer, KERNEL_STACKS_USED, r->start_ns);
	return err ? err : mlk_writer_finish(r->writer, r->reason, clock_now_ns());
}

/* @one: what is said of one of it, @many: of several, before @what. */
static void warn(uint64_t nr, const char *one, const char *many, const char *what)
{
	if (nr)
		log_warn("%" PRIu64 " %s%s", nr, nr == 1 ? one : many, what);
}

static void warn_of_losses(const struct kernel_recording *r)
{
	const struct kernel_events_sums *sums = kernel_events_sums(r->events);
	const uint64_t *c = r->counts;

	warn(c[KMEM_LOST_FULL], "allocation was", "allocations were",
	     " lost: the table of blocks was full; a larger --max-blocks keeps them");
	warn(r->missed_allocs, "allocation was lost in interrupts",
	     "allocations were lost in interrupts", ", where eBPF does not run");
	warn(c[KMEM_LOST_FREES] + r->missed_frees, "free was lost in interrupts",
	     "frees were lost in interrupts",
	     ", where eBPF does not run; what was freed looks leaked");
	warn(c[KMEM_LOST_RING] + c[KMEM_LOST_RING_ALLOC], "event found the buffer full",
	     "events found the buffer full", "");
	warn(c[KMEM_LOST_STACK], "allocation has no stack", "allocations have no stack",
	     ": there was no room for another one");
	warn(c[KMEM_LOST_USER], "allocation lacks the stack of user space",
	     "allocations lack the stack of user space", ": there was no room");
	warn(c[KMEM_UNREAD_USER], "allocation lacks the stack of user space",
	     "allocations lack the stack of user space", ": it was not in memory");
	warn(sums->gone_users, "block lacks the stack of user space",
	     "blocks lack the stack of user space",
	     ": the process had ended, or ran another program");
	warn(sums->other_users, "block lacks the stack of user space",
	     "blocks lack the stack of user space",
	     ": of a program of 32 bits, or one that was being replaced");
	warn(sums->too_large, "snapshot of what a process has mapped was too large for the trace",
	     "snapshots of what a process has mapped were too large for the trace",
	     ": stacks may be wrong");
	warn(sums->unreadable, "program or library could not be read",
	     "programs or libraries could not be read", ": stacks end there");
	warn(c[KMEM_REUSED], "block was freed without a notice",
	     "blocks were freed without a notice", ", as the address was allocated again");
	warn(sums->cut, "stack was cut", "stacks were cut", " to the first 64 frames");
	warn(kernel_stacks_unnamed(r->stacks), "frame lies", "frames lie",
	     " in no function that /proc/kallsyms names; what has no name is left out");
}

static void tell(const struct kernel_recording *r)
{
	const struct kernel_events_sums *sums = kernel_events_sums(r->events);
	const uint64_t *c = r->counts;

	log_info("recorded %.1f s of the kernel's memory: %" PRIu64 " allocation%s, %" PRIu64
		 " freed; %" PRIu64 " lived long enough to be written",
		 (double)(clock_now_ns() - r->begin_ns) / 1e9, c[KMEM_ALLOCATED],
		 c[KMEM_ALLOCATED] == 1 ? "" : "s", c[KMEM_SHORT] + c[KMEM_SENT], sums->allocs);
	log_info("stacks: %" PRIu64
		 " walked by the kernel, the others known by its tables; of these "
		 "%" PRIu64 " checked, %" PRIu64 " wrong",
		 c[KMEM_WALKED] - c[KMEM_CHECKED], c[KMEM_CHECKED], sums->wrong);
	if (r->opts->probes.user_stacks)
		log_info("stacks of user space: with %" PRIu64 " block%s", sums->users,
			 sums->users == 1 ? "" : "s");
	log_info("left out: mleak's own %" PRIu64 " allocation%s (%" PRIu64 " bytes), %" PRIu64
		 " page%s of slabs whose objects are recorded",
		 c[KMEM_OWN], c[KMEM_OWN] == 1 ? "" : "s", c[KMEM_OWN_BYTES], sums->slab_pages,
		 sums->slab_pages == 1 ? "" : "s");
	if (!sums->allocs)
		log_warn("no block is in the trace: none was allocated that lived long enough and "
			 "that --comm, --cgroup, --cache or the sizes did not leave out");
	warn_of_losses(r);
	if (kmem_probes_blind(r->probes) & KMEM_BLIND_BULK)
		log_warn(
			"this kernel lets no eBPF program see frees of many objects at once, as by "
			"kfree_rcu(): such objects may look leaked");
	output_tell(r->out, mlk_writer_bytes(r->writer), true);
}

/* What goes on needs no privileges but to find the paths of cgroups by their ids, and what is open
 * already. */
static void give_up_privileges(const struct kernel_recording *r)
{
	const bool several = r->opts->several.on;
	const struct privileges_later later = {.preload = true};
	uint64_t caps = UINT64_C(1) << CAP_DAC_READ_SEARCH;

	if (kernel_maps_take_bpf())
		caps |= UINT64_C(1) << CAP_BPF;
	/* further traces go where the first one did, which others may own */
	if (several)
		caps |= UINT64_C(1) << CAP_DAC_OVERRIDE;
	/* Landlock lets nobody look at the memory of others, whatever capabilities they have. */
	if (r->opts->probes.user_stacks)
		caps |= privileges_needed(&later);
	else
		sandbox_enter_both(r->writer, several ? r->out->place.dir : -1);
	privileges_reduce(caps, r->writer);
}

/* Whether it was the trace: the writer repeats its error. */
static void explain_end(const struct kernel_recording *r, bool began, int err)
{
	if (began && r->writer && !mlk_writer_flush(r->writer))
		log_error("cannot read what the eBPF programs recorded of the kernel's memory: %s; "
			  "the trace '%s' ends there, without names of functions",
			  mlk_strerror(err), r->out->path);
	else
		write_failed_tell(r->out->path, err, began);
}

static int record_to(struct kernel_recording *r)
{
	bool began = false, told = false;
	sigset_t set;
	int err, signals;

	signals_block();
	signals_of_ours(&set);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->begin_ns = clock_now_ns();
	err = signals < 0 ? -errno : kernel_trace_open(r, r->out->fd, r->begin_ns);
	if (!err)
		err = begin(r);
	/* Who waits for the trace to have its name waits for the recording to begin. */
	if (!err) {
		err = output_take(r->out);
		told = err != 0;
	}
	if (!err) {
		began = true;
		give_up_privileges(r);
		if (r->opts->several.time_ns)
			r->switcher.next_ns = clock_now_ns() + r->opts->several.time_ns;
		err = run(r, signals);
	}
	if (!err)
		err = finish(r);
	if (signals >= 0)
		close(signals);
	if (!err)
		tell(r);
	else if (!told)
		explain_end(r, began, err);
	return err;
}

int kernel_record(const struct kernel_opts *opts)
{
	struct output out = {.number = opts->several.on};
	struct kernel_recording r = {.opts = opts, .out = &out};
	int err;

	r.switcher = (struct switcher){.opts = &opts->several,
				       .name = &opts->output,
				       .out = &out,
				       .writer = kernel_trace_writer(&r)};
	if (output_open(&out, &opts->output, 0))
		return EXIT_RECORD_FAILED;
	err = attach(&r);
	if (!err)
		err = record_to(&r);
	kernel_events_free(r.events);
	kernel_origins_free(r.origins);
	mlk_writer_free(r.writer);
	switch_release(&r.switcher);
	output_close(&out);
	kernel_stacks_free(r.stacks);
	kmem_probes_free(r.probes);
	kallsyms_free(r.names);
	return err ? EXIT_RECORD_FAILED : EXIT_OK;
}
