/* probes.c - skeleton open, load, attach; and the rings that come back */
#include "record/probe/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bpf/event.h"
#include "mleak.bpf.skel.h"
#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/filter/filters_sweep.h"
#include "record/privilege/helper.h"
#include "record/probe/placing.h"
#include "record/probe/ring.h"
#include "record/probe/uprobe_multi.h"

/* Inode of the initial pid namespace, include/linux/proc_ns.h: PROC_PID_INIT_INO. */
#define INITIAL_PIDNS 0xeffffffcul

#define WAKEUP_BYTES (1u << 20) /* with a large ring, wake the recorder when so much is waiting */
#define SECOND_NS    1000000000u
#define SLOW_NS	     30000000u /* to make a link takes longer only if others keep the kernel busy */

/* The first ring: it ought to fit into a processor's second cache. */
#define FRONT_BYTES (1u << 20)

struct probes {
	bool filtered; /* allocations or frees may be left out */
	struct filters_sweep sweep;
	struct mleak_bpf *skel;
	struct ring *ring;
	uint64_t paced_at, paced_ns; /* of the last probes_pace() */
	struct deferred_frees kept;
	struct ring_mark freed_end; /* where the rings ended when they were noted, */
	struct ring_mark end;	    /* and when they were consumed last */
	bool multi;
	struct placing placing;
	bool waits;   /* for the kernel, to make a link */
	bool session; /* a function's entry and return have one program */
	struct link_closer *closing;
	struct bpf_link *life[4]; /* that tell of exec, fork, exit and signals */
};

/* Frees first, so that no block is seen given out whose free is not; returns before entries, so
 * that no entry waits for a return that is not probed.  As long as nothing counts any order does.
 */
static const struct step {
	enum site_kind kind;
	bool is_return;
	enum event_func only; /* the one function, or 0: those that have no step of their own */
	enum {
		BY_PROBE,
		RET,
		BY_RET
	} how; /* functions with return probes; the instructions by
		  which others return; the entries of these */
} steps[] = {{SITE_FREE, false, FUNC_FREE, BY_PROBE},
	     {SITE_FREE, false, 0, BY_PROBE},
	     {SITE_ALLOC, true, FUNC_MALLOC, BY_PROBE},
	     {SITE_ALLOC, true, 0, BY_PROBE},
	     {SITE_ALLOC, false, 0, RET},
	     {SITE_ALLOC, false, 0, BY_RET},
	     {SITE_ALLOC, false, FUNC_MALLOC, BY_PROBE},
	     {SITE_ALLOC, false, 0, BY_PROBE}};

#define NR_STEPS (sizeof(steps) / sizeof(steps[0]))

_Static_assert(NR_STEPS <= PROBES_MAX_PROGRAMS, "one a step");
_Static_assert(ALLOCATOR_MAX_SITES <= RETURNS_MAX, "room for either");

static bool is_of_step(const struct alloc_site *site, const struct step *step)
{
	bool has_own = site->func == FUNC_MALLOC || site->func == FUNC_FREE;

	if (step->how != BY_PROBE || site->by_ret)
		return step->how == BY_RET && site->by_ret;
	return site->kind == step->kind && (step->only ? site->func == step->only : !has_own);
}

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

static struct bpf_program *program_of(const struct probes *p, const struct step *step)
{
	if (step->kind == SITE_FREE && step->only)
		return p->filtered ? p->skel->progs.free_filtered : p->skel->progs.free_entry;
	if (step->kind == SITE_FREE)
		return p->skel->progs.munmap_entry;
	if (step->how != BY_PROBE)
		return step->how == RET ? p->skel->progs.alloc_ret : p->skel->progs.alloc_entry;
	if (p->session)
		return step->only && !p->filtered ? p->skel->progs.malloc_session
						  : p->skel->progs.alloc_session;
	if (step->only && !p->filtered)
		return step->is_return ? p->skel->progs.malloc_return : p->skel->progs.malloc_entry;
	return step->is_return ? p->skel->progs.alloc_return : p->skel->progs.alloc_entry;
}

static bool is_session(const struct probes *p, const struct step *step)
{
	return p->session && step->kind == SITE_ALLOC && step->how == BY_PROBE;
}

/* Of the programs for probes those that are used are loaded, each for its kind of links. */
static void choose_programs(struct probes *p)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, p->skel->obj)
	{
		if (bpf_program__type(prog) == BPF_PROG_TYPE_KPROBE)
			bpf_program__set_autoload(prog, false);
	}
	for (size_t i = 0; i < NR_STEPS; i++) {
		prog = program_of(p, &steps[i]);
		bpf_program__set_autoload(prog, true);
		if (p->multi)
			bpf_program__set_expected_attach_type(
				prog, is_session(p, &steps[i]) ? UPROBE_SESSION_ATTACH_TYPE
							       : UPROBE_MULTI_ATTACH_TYPE);
	}
}

static int load(struct probes *p, const struct probes_opts *opts)
{
	int err;

	p->skel = mleak_bpf__open();
	if (!p->skel)
		return -errno;
	p->filtered = filters_any(opts->filters);
	err = configure(p->skel, opts);
	if (!err)
		err = bpf_map__set_max_entries(p->skel->maps.events, opts->ring_size);
	if (!err)
		err = bpf_map__set_max_entries(p->skel->maps.front, front_size(opts));
	if (err)
		return err;
	choose_programs(p);
	err = mleak_bpf__load(p->skel);
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

/* Are links made side by side?  That is dearer where the kernel has nobody to wait for; and perf
 * events it makes one after the other all the same. */
static bool places_together(const struct probes *p)
{
	return p->multi && p->waits && !p->skel->bss->armed;
}

/* The places in @o that @step is for, and their cookies.  Returns how many. */
static uint32_t list_step(const struct alloc_object *o, const struct step *step, uint64_t *offsets,
			  uint64_t *cookies)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < o->nr; i++) {
		if (!is_of_step(&o->sites[i], step))
			continue;
		offsets[nr] = o->sites[i].function + o->sites[i].offset;
		cookies[nr++] = o->sites[i].func | (o->sites[i].by_ret ? EVENT_BY_RET : 0);
	}
	for (size_t i = 0; step->how == RET && i < o->returns.nr; i++) {
		offsets[nr] = o->returns.v[i].at;
		cookies[nr++] = o->returns.v[i].is_memset ? EVENT_RET_MEMSET : EVENT_RET;
	}
	return nr;
}

/* All sites of @set that @step is for, on @file: one multi link, or a perf event for each.  At the
 * beginning, if it takes its time, one link each, which p->placing is to make. */
static int link_step(struct probes *p, const struct step *step, struct link_set *set,
		     const struct target *t, int file)
{
	uint64_t offsets[RETURNS_MAX], cookies[RETURNS_MAX];
	struct helper_link l = {.of = {t->pid, t->task},
				.program = bpf_program__fd(program_of(p, step)),
				.file = file,
				.is_return = step->is_return,
				.multi = p->multi,
				.session = is_session(p, step),
				.offsets = offsets,
				.cookies = cookies};
	bool one_each = !p->multi || places_together(p);
	uint32_t nr = list_step(set->object, step, offsets, cookies);
	int err = 0;

	if (is_session(p, step) && step->is_return)
		return 0; /* the step of the entries does it */

	for (uint32_t i = 0; !err && i < nr; i += l.nr) {
		l.nr = one_each ? 1 : nr - i < HELPER_MAX_PROBES ? nr - i : HELPER_MAX_PROBES;
		l.offsets = offsets + i;
		l.cookies = cookies + i;
		err = places_together(p) ? placing_add(&p->placing, set, &l)
					 : links_put(set, t->helper, &l);
	}
	return err;
}

size_t probes_programs(const struct probes *p, int *fds)
{
	/* Of a step that another one does (is_session) that's program, twice. */
	for (size_t i = 0; i < NR_STEPS; i++)
		fds[i] = bpf_program__fd(program_of(p, &steps[i]));
	return NR_STEPS;
}

int probes_set_code(struct probes *p, const struct target *t, const struct allocators *a)
{
	const uint32_t tgid = (uint32_t)t->pid;
	const struct bpf_map *map = p->skel->maps.targets;
	int err = bpf_map__update_elem(map, &tgid, sizeof(tgid), &a->code, sizeof(a->code),
				       BPF_EXIST);

	if (err != -ENOENT)
		return err;
	/* Nobody would take out what is put in after its end. */
	if (target_has_ended(t))
		return -ESRCH;
	return bpf_map__update_elem(map, &tgid, sizeof(tgid), &a->code, sizeof(a->code), BPF_ANY);
}

/* Link the objects of @a that have no set in @links yet, step by step over all of them; not those
 * on whose files other functions are probed.  Returns how many these are, or -errno. */
static int link_new(struct probes *p, struct links *links, const struct target *t,
		    const struct allocators *a)
{
	bool is_new[ALLOCATOR_MAX_OBJECTS], clashes;
	int err = 0, left = 0;

	for (size_t i = 0; i < a->nr; i++) {
		clashes = links_clash(links, &a->v[i]);
		left += clashes;
		is_new[i] = !clashes && !links_find(links, &a->v[i]);
		if (is_new[i] && !links_add(links, &a->v[i]))
			return -ENOMEM;
	}
	for (size_t s = 0; !err && s < NR_STEPS; s++)
		for (size_t i = 0; !err && i < a->nr; i++) {
			struct link_set *set = links_find(links, &a->v[i]);
			uint64_t begun_ns = clock_now_ns();

			if (is_new[i])
				err = link_step(p, &steps[s], set, t, a->v[i].fd);
			p->waits |= clock_now_ns() - begun_ns > SLOW_NS;
		}
	if (p->placing.nr) {
		int placed = placing_run(&p->placing);

		err = err ? err : placed;
	}
	return err ? err : left;
}

int probes_place(struct probes *p, struct links *links, const struct target *t,
		 const struct allocators *a)
{
	int err;

	/* Links that go by a main thread which has ended would see nothing. */
	if (p->multi && t->task != t->pid)
		return -ESRCH;
	err = probes_set_code(p, t, a);
	if (!err)
		err = link_new(p, links, t, a);
	/* A function with two probes would be counted twice.  What its calls come from is probed by
	 * now. */
	if (err > 0) {
		links_drop(links, a, p->closing);
		link_closer_wait(p->closing);
		err = link_new(p, links, t, a);
	}
	/* Else what goes, goes after the rest has come: the kernel takes its time for it. */
	links_drop(links, err ? NULL : a, p->closing);
	return err;
}

void probes_drop(struct probes *p, struct links *links)
{
	links_drop(links, NULL, p->closing);
}

void probes_settle(struct probes *p)
{
	link_closer_wait(p->closing);
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
	return are_multi(opts) && kernel_has_sessions();
}

int probes_load(struct probes **out, const struct probes_opts *opts, bool *judged)
{
	struct probes *p = calloc(1, sizeof(*p));
	int err;

	*out = NULL;
	*judged = verifier_spoke = false;
	libbpf_set_print(libbpf_quiet);
	if (!p)
		return -ENOMEM;
	p->multi = are_multi(opts);
	p->session = probes_spare_handlers(opts);
	err = link_closer_new(&p->closing);
	if (!err)
		err = load(p, opts);
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
	const struct bpf_map *first = p->skel->maps.front, *second = p->skel->maps.events;
	const struct ring_map maps[RING_PARTS] = {
		{bpf_map__fd(first), bpf_map__max_entries(first)},
		{bpf_map__fd(second), bpf_map__max_entries(second)},
	};

	return ring_open(maps, consumer->event, consumer->ctx, &p->ring);
}

int probes_fd(const struct probes *p, int i)
{
	const struct bpf_map *maps[RING_PARTS] = {p->skel->maps.front, p->skel->maps.events};

	return i < RING_PARTS ? bpf_map__fd(maps[i]) : -1;
}

uint64_t probes_pace(struct probes *p, uint64_t clock_now_ns)
{
	uint64_t taken = ring_taken(p->ring), bytes = taken - p->paced_at;
	uint64_t ns = clock_now_ns - p->paced_ns;

	p->paced_at = taken;
	p->paced_ns = clock_now_ns;
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

void probes_note_freed(struct probes *p)
{
	deferred_frees_snapshot(&p->kept, p->skel);
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
	return probes_caught_up(p) && deferred_frees_next(&p->kept, p->skel, at, free);
}

void probes_begin(struct probes *p, const struct filter_opts *filters)
{
	filters_begin(filters, p->skel);
	p->skel->bss->armed = 1;
}

void probes_all_threads(struct probes *p)
{
	filters_all_threads(p->skel);
}

bool probes_forget_ended(struct probes *p)
{
	return p->filtered && filters_sweep(p->skel, &p->sweep);
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
	filters_count(p->skel, losses);
}

bool probes_are_multi(const struct probes *p)
{
	return p->multi;
}

const char *probes_backend(const struct probes *p)
{
	return p->multi ? "bpf uprobe_multi" : "bpf perf uprobes";
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	link_closer_free(p->closing);
	ring_close(p->ring);
	if (p->skel)
		unload(p);
	free(p);
}
