/* probes.c - the BPF programs: open, load, begin and end; and the rings that come back */
#include "record/probe/probes_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mleak.bpf.skel.h"
#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/filter/choices.h"
#include "record/probe/kernel_types.h"

#define ACCOUNTS_NS 5000000000u /* between two times that threads' accounts are read */

/* Inode of the initial pid namespace, include/linux/proc_ns.h: PROC_PID_INIT_INO. */
#define INITIAL_PIDNS 0xeffffffcul

#define WAKEUP_BYTES (1u << 20) /* with a large ring, wake the recorder when so much is waiting */
#define SECOND_NS    1000000000u

/* The first ring: it ought to fit into a processor's second cache. */
#define FRONT_BYTES (1u << 20)

/* The verifier had something to say while this thread loaded the programs. */
static _Thread_local bool verifier_spoke;

/* libbpf calls it in the thread that does the loading. */
static int libbpf_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	/* Its one sign that the verifier was reached: what fails before has no log. */
	if (strstr(fmt, "BEGIN PROG LOAD LOG"))
		verifier_spoke = true;
	if (level == LIBBPF_DEBUG || !getenv("MLEAK_LIBBPF_LOG"))
		return 0;
	return vfprintf(stderr, fmt, args);
}

static uint32_t front_size(const struct probes_opts *opts)
{
	return opts->ring_size / 2 < FRONT_BYTES ? opts->ring_size / 2 : FRONT_BYTES;
}

/* Settings that must be there before the programs are loaded. */
static int configure(struct mleak_bpf *skel, const struct probes_opts *opts)
{
	struct stat ns;

	skel->rodata->stack_limit = opts->stack_limit;
	skel->rodata->follow = opts->follow;
	skel->rodata->sessions = probes_spare_handlers(opts);
	skel->rodata->use_slots = kernel_finds_storage();
	skel->rodata->ring_size = opts->ring_size;
	/* Soon enough even for a hundred threads, of which each sends so much unseen. */
	skel->rodata->check_bytes = opts->ring_size / 1024;
	skel->rodata->wakeup_bytes =
		opts->ring_size / 8 < WAKEUP_BYTES ? opts->ring_size / 8 : WAKEUP_BYTES;
	skel->rodata->front_wakeup_bytes = front_size(opts) / 4;
	if (!stat("/proc/self/ns/pid", &ns) && ns.st_ino != INITIAL_PIDNS) {
		skel->rodata->pidns_dev = ns.st_dev;
		skel->rodata->pidns_ino = ns.st_ino;
	}
	return filters_configure(opts->filters, skel);
}

/* Open the programs with @types, an empty file, for what they ask for of the kernel's types.  -1:
 * or if that fails, libbpf is to read them all. */
static struct mleak_bpf *open_programs(int types)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct mleak_bpf *skel;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", types);
	opts.btf_custom_path = types < 0 ? NULL : path;
	skel = mleak_bpf__open_opts(&opts);
	if (!skel || types < 0 || !kernel_types_write(types, bpf_object__btf(skel->obj)))
		return skel;
	mleak_bpf__destroy(skel);
	return mleak_bpf__open();
}

/* The maps of both rings are those that are being made. */
static int use_rings(struct probes *p)
{
	int fds[RING_PARTS], err = ring_making_fds(p->making, fds);

	if (!err)
		err = bpf_map__reuse_fd(p->skel->maps.front, fds[0]);
	return err ? err : bpf_map__reuse_fd(p->skel->maps.events, fds[1]);
}

static int load(struct probes *p, const struct probes_opts *opts, int types)
{
	int err;

	p->skel = open_programs(types);
	if (!p->skel)
		return -errno;
	p->filtered = filters_any(opts->filters);
	err = configure(p->skel, opts);
	if (!err)
		err = use_rings(p);
	if (err)
		return err;
	probes_choose_programs(p);
	err = mleak_bpf__load(p->skel);
	if (!err)
		err = probes_join_programs(p);
	return err ? err : filters_name_threads(opts->filters, p->skel);
}

static void unload(struct probes *p)
{
	for (size_t i = 0; i < sizeof(p->life) / sizeof(p->life[0]); i++) {
		bpf_link__destroy(p->life[i]);
		p->life[i] = NULL;
	}
	mleak_bpf__destroy(p->skel);
	p->skel = NULL;
}

/* Before the probes: no exec may be missed between. */
static int attach_life(struct probes *p)
{
	const struct {
		struct bpf_program *prog;
		const char *name;
	} points[] = {{p->skel->progs.process_exec, "sched_process_exec"},
		      {p->skel->progs.process_fork, "sched_process_fork"},
		      {p->skel->progs.process_exit, "sched_process_exit"},
		      {p->skel->progs.process_signal, "signal_deliver"}};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		p->life[i] = bpf_program__attach_raw_tracepoint(points[i].prog, points[i].name);
		if (!p->life[i])
			return -errno;
	}
	return 0;
}

/* Links for a process go by its main thread: where that has ended, only a perf event's, by another
 * thread, work. */
static bool are_multi(const struct probes_opts *opts)
{
	return opts->link == PROBE_LINK_MULTI ||
	       (opts->link == PROBE_LINK_AUTO && !opts->by_thread &&
		!kernel_multi_filters_threads());
}

bool probes_spare_handlers(const struct probes_opts *opts)
{
	return are_multi(opts) && kernel_has_sessions() && !opts->by_ret;
}

int probes_load(struct probes **out, const struct probes_opts *opts, bool *judged)
{
	const uint32_t sizes[RING_PARTS] = {front_size(opts), opts->ring_size};
	struct probes *p = calloc(1, sizeof(*p));
	int err, types;

	*out = NULL;
	*judged = verifier_spoke = false;
	libbpf_set_print(libbpf_quiet);
	if (!p)
		return -ENOMEM;
	p->multi = are_multi(opts);
	p->session = probes_spare_handlers(opts);
	types = memfd_create("mleak-kernel-types", MFD_CLOEXEC);
	err = ring_making_begin(&p->making, sizes);
	if (!err)
		err = link_closer_new(&p->closing);
	if (!err)
		err = load(p, opts, types);
	if (err && types >= 0 && p->skel && !verifier_spoke) {
		/* it may be that libbpf does not take the types as they were written */
		mleak_bpf__destroy(p->skel);
		err = load(p, opts, -1);
	}
	if (types >= 0)
		close(types);
	*judged = err && verifier_spoke;
	if (!err)
		err = attach_life(p);
	if (err)
		probes_free(p);
	else
		*out = p;
	return err;
}

int probes_set_consumer(struct probes *p, const struct probes_consumer *consumer)
{
	int err = ring_making_end(p->making, &p->ring);

	ring_making_free(p->making);
	p->making = NULL;
	if (!err)
		ring_set_consumer(p->ring, consumer->event, consumer->ctx);
	return err;
}

int probes_fd(const struct probes *p, int i)
{
	const struct bpf_map *maps[RING_PARTS] = {p->skel->maps.front, p->skel->maps.events};

	return i < RING_PARTS ? bpf_map__fd(maps[i]) : -1;
}

uint64_t probes_pace(struct probes *p, uint64_t now_ns)
{
	uint64_t taken = ring_taken(p->ring), bytes = taken - p->paced_at;
	uint64_t ns = now_ns - p->paced_ns;

	p->paced_at = taken;
	p->paced_ns = now_ns;
	if (ns > SECOND_NS)
		ns = SECOND_NS;
	return bytes ? ns * p->skel->rodata->front_wakeup_bytes / bytes : UINT64_MAX;
}

void probes_wait(struct probes *p, bool waits)
{
	p->skel->bss->recorder_waits = waits;
}

int probes_consume(struct probes *p)
{
	ring_mark(p->ring, &p->end);
	return ring_consume(p->ring);
}

bool probes_took_all(const struct probes *p)
{
	return ring_has_passed(p->ring, &p->end);
}

void probes_end(struct probes *p)
{
	/* A call that is noted no more needs no return. */
	p->skel->bss->ended = 1;
}

/* Note what the slots of @skel keep now.  Where the rings end is to be asked after this. */
static void snapshot_frees(struct deferred_frees *k, const struct mleak_bpf *skel)
{
	for (size_t i = 0; i < EVENT_SLOTS; i++) {
		const __u64 *slot = skel->bss->slots[i];

		k->freed[i] = __atomic_load_n(&slot[EVENT_SLOT_FREED], __ATOMIC_ACQUIRE);
		/* It may be that of the next already: then it is that, too, when it is to be taken.
		 */
		k->time_ns[i] = __atomic_load_n(&slot[EVENT_SLOT_FREED_NS], __ATOMIC_RELAXED);
	}
}

/* Take the next one of those noted, from slot *@at on, that waits still, and *@at is behind it.
 * False: there is none from there on. */
static bool next_free(const struct deferred_frees *k, const struct mleak_bpf *skel, size_t *at,
		      struct kept_free *free)
{
	while (*at < EVENT_SLOTS) {
		__u64 *slot = skel->bss->slots[*at], noted = k->freed[*at];

		free->time_ns = k->time_ns[(*at)++];

		/* Before the exchange: it fails where another thread has the slot meanwhile. */
		free->id = __atomic_load_n(&slot[EVENT_SLOT_ID], __ATOMIC_ACQUIRE);
		if (noted < EVENT_FREED_MIN ||
		    !__atomic_compare_exchange_n(&slot[EVENT_SLOT_FREED], &noted, EVENT_FREED_NONE,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		free->addr = event_freed(noted);
		return true;
	}
	return false;
}

void probes_note_freed(struct probes *p)
{
	snapshot_frees(&p->kept, p->skel);
	ring_mark(p->ring, &p->freed_end);
}

bool probes_caught_up(const struct probes *p)
{
	return ring_has_passed(p->ring, &p->freed_end);
}

/* What a slot keeps since it was noted, comes behind all events that its thread sent before, which
 * were in the rings by then. */
bool probes_freed(struct probes *p, size_t *at, struct kept_free *free)
{
	return probes_caught_up(p) && next_free(&p->kept, p->skel, at, free);
}

void probes_begin(struct probes *p, const struct filter_opts *filters)
{
	filters_begin(filters, p->skel);
	p->skel->bss->armed = 1;
}

void probes_all_threads(struct probes *p)
{
	choices_record_all(p->skel);
}

int probes_choose(struct probes *p, const struct choice *choice, char *why)
{
	return choices_apply(p->skel, choice, why);
}

void probes_count_choices(const struct probes *p, struct choice_counts *counts)
{
	choices_count(p->skel, counts);
}

bool probes_forget_ended(struct probes *p)
{
	return p->filtered && filters_sweep(p->skel, &p->sweep);
}

int probes_write_accounts(struct probes *p, struct mlk_writer *writer, bool last)
{
	int fd = bpf_map__fd(p->skel->maps.thread_accounts); /* negative: no filter needs it */
	uint64_t now_ns = clock_now_ns();
	int err;

	if (fd < 0 || (!last && now_ns - p->accounts.read_ns < ACCOUNTS_NS))
		return 0;
	p->accounts.read_ns = now_ns;
	err = accounts_read(&p->accounts, fd, bpf_map__fd(p->skel->maps.targets));
	return err ? err : accounts_write(&p->accounts, writer, now_ns);
}

void probes_begin_accounts(struct probes *p)
{
	accounts_begin_trace(&p->accounts);
}

void probes_losses(const struct probes *p, struct mlk_losses *losses)
{
	const struct event_drops *d = (const struct event_drops *)&p->skel->bss->drops;

	losses->count[MLK_LOST_ALLOC] += d->alloc;
	losses->count[MLK_LOST_FREE] += d->free;
	losses->count[MLK_LOST_RELEASE] += d->release;
	losses->count[MLK_LOST_RESTORE] += d->restore;
	losses->count[MLK_LOST_RETURN] += d->ret;
	losses->count[MLK_LOST_STATE] += d->state;
	losses->count[MLK_LOST_POINTER] += d->pointer;
	losses->count[MLK_LOST_EXEC] += d->fork + d->exit;
	losses->count[MLK_LOST_NOTICE] += d->exec;
	losses->count[MLK_LOST_UNMAP] += d->unmap;
	losses->count[MLK_LOST_SUM] += d->sum;
	losses->count[MLK_LOST_FRAMES] += d->frames;
	filters_count(p->skel, losses);
}

bool probes_are_multi(const struct probes *p)
{
	return p->multi;
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	link_closer_free(p->closing);
	ring_making_free(p->making);
	ring_close(p->ring);
	accounts_release(&p->accounts);
	if (p->skel)
		unload(p);
	free(p);
}
