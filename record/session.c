/* session.c - events, mappings, modules and names, each into the writer */
#include "record/session.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bpf/event.h"
#include "mleak.h"
#include "record/objects.h"
#include "record/quiet.h"

/* Events taken in before other things are looked at again: some milliseconds' worth. */
#define BATCH 20000

#define FIND_NS 1000000000u /* longest wait for a new program's libraries */

_Static_assert((int)EVENT_ALLOC == MLK_ALLOC && (int)EVENT_FREE == MLK_FREE &&
		       (int)EVENT_RELEASE == MLK_RELEASE && (int)EVENT_RESTORE == MLK_RESTORE &&
		       (int)EVENT_EXEC == MLK_EXEC && (int)EVENT_UNMAP == MLK_UNMAP,
	       "the ring's kinds are the trace's");
_Static_assert((int)FUNC_MALLOC == MLK_FUNC_MALLOC && (int)FUNC_CALLOC == MLK_FUNC_CALLOC &&
		       (int)FUNC_REALLOC == MLK_FUNC_REALLOC &&
		       (int)FUNC_POSIX_MEMALIGN == MLK_FUNC_POSIX_MEMALIGN &&
		       (int)FUNC_ALIGNED_ALLOC == MLK_FUNC_ALIGNED_ALLOC &&
		       (int)FUNC_MEMALIGN == MLK_FUNC_MEMALIGN &&
		       (int)FUNC_VALLOC == MLK_FUNC_VALLOC &&
		       (int)FUNC_PVALLOC == MLK_FUNC_PVALLOC &&
		       (int)FUNC_REALLOCARRAY == MLK_FUNC_REALLOCARRAY &&
		       (int)FUNC_MMAP == MLK_FUNC_MMAP && (int)FUNC_MREMAP == MLK_FUNC_MREMAP &&
		       (int)FUNC_NEW == MLK_FUNC_NEW && (int)FUNC_NEW_ARRAY == MLK_FUNC_NEW_ARRAY,
	       "the ring's functions are the trace's");

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t session_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void fail(struct session *s, int err)
{
	if (err && !s->err)
		s->err = err;
}

/* The executable mappings go into the trace: no stack can lead anywhere else.  What a single chunk
 * does not hold is counted as lost. */
static void write_maps(struct session *s, uint64_t time_ns)
{
	struct mlk_maps snapshot = {.tgid = (uint32_t)s->target.pid,
				    .time_ns = time_ns,
				    .nr = s->maps.nr,
				    .mappings = s->maps.v};
	int err = mlk_writer_maps(s->writer, &snapshot);

	if (err == -EINVAL)
		s->maps_lost++;
	else
		fail(s, err);
	s->maps_changed = false;
}

/* The words of stacks that are code are kept.  Without notices of new mappings no word can be known
 * not to be code, so all that could be addresses are. */
static void set_code(struct session *s)
{
	static const struct mlk_mapping anything = {
		.start = 1 << 16, .end = 1ull << 47, .perms = MLK_PERM_X, .path = ""};

	if ((s->sideband || s->preload) && !s->maps_missed)
		mlk_writer_set_code(s->writer, s->maps.v, s->maps.nr);
	else
		mlk_writer_set_code(s->writer, &anything, 1);
}

/* The kernel knows that @m is mapped since @time_ns. */
static void on_mapped(void *ctx, uint64_t time_ns, const struct mlk_mapping *m)
{
	struct session *s = ctx;
	struct mlk_mapping known = *m;

	/* What is replaced was valid until now: it needs a snapshot of its own. */
	if (s->maps_changed && maps_overlaps(&s->maps, m))
		write_maps(s, s->maps_changed_ns);
	fail(s, modules_identify(&s->modules, &s->target, s->writer, &known));
	fail(s, maps_add(&s->maps, &known));
	if (!s->maps_changed || time_ns < s->maps_changed_ns)
		s->maps_changed_ns = time_ns;
	s->maps_changed = true;
	set_code(s);
}

static void on_named(void *ctx, uint32_t tid, const char *name)
{
	struct session *s = ctx;

	fail(s, threads_name(&s->threads, tid, name));
}

static void on_execed(void *ctx, uint64_t time_ns)
{
	struct session *s = ctx;

	if (s->maps_changed)
		write_maps(s, s->maps_changed_ns);
	maps_clear(&s->maps);
	s->maps_changed = true;
	s->maps_changed_ns = time_ns;
}

static void on_lost(void *ctx, uint64_t nr)
{
	struct session *s = ctx;

	s->maps_lost += nr;
	s->maps_missed = true;
	set_code(s);
}

/* Read all mappings anew and write them as valid from @time_ns.  False: the process has ended. */
static bool snapshot_maps(struct session *s, uint64_t time_ns)
{
	int err = maps_read(&s->maps, s->target.task);

	if (err) {
		if (err == -ENOMEM)
			fail(s, err);
		return false;
	}
	maps_keep_code(&s->maps);
	for (size_t i = 0; i < s->maps.nr; i++)
		fail(s, modules_identify(&s->modules, &s->target, s->writer, &s->maps.v[i]));
	write_maps(s, time_ns);
	s->maps_missed = false;
	set_code(s);
	return true;
}

static void read_sideband(struct session *s)
{
	const struct sideband_sink sink = {.mapped = on_mapped,
					   .named = on_named,
					   .execed = on_execed,
					   .lost = on_lost,
					   .ctx = s};

	s->maps_known_ns = session_now_ns();
	if (s->sideband)
		sideband_read(s->sideband, &sink);
}

/* Write a snapshot if mappings changed: not for each notice, for there are programs that map code
 * all the time. */
static void flush_maps(struct session *s)
{
	if (s->preload)
		return; /* it is told at once, and in the order of events */
	if (!s->sideband)
		snapshot_maps(s, session_now_ns());
	else if (s->maps_missed &&
		 snapshot_maps(s, s->maps_changed ? s->maps_changed_ns : session_now_ns()))
		return;
	else if (s->maps_changed)
		write_maps(s, s->maps_changed_ns);
}

/* At a call's return the scratch registers hold what the callee left there: nothing of the
 * caller's, and nothing that an unwinder could need (x86-64 psABI 1.0, figure 3.4). */
static void drop_scratch(uint64_t *regs)
{
	static const uint8_t scratch[] = {0, 1, 2,  4, 5,
					  8, 9, 10, 11}; /* rax rdx rcx rsi rdi r8-r11 */

	for (size_t i = 0; i < sizeof(scratch); i++)
		regs[scratch[i]] = 0;
}

static int take_alloc(struct session *s, const struct event_alloc *e, size_t size)
{
	const struct dwunw_async_event *c = &e->capture;
	struct mlk_event ev = {
		.kind = MLK_ALLOC,
		.func = (uint8_t)e->func,
		.nr_regs = DWUNW_MAX_ARCH_REGS,
		.flags = c->flags,
		.tgid = c->tgid,
		.tid = c->tid,
		.time_ns = c->timestamp,
		.addr = e->addr,
		.size = e->size,
		.alloc_id = c->alloc_id,
		.stack = c->stack_bytes,
		.stack_len = c->stack_size,
	};

	if (size < sizeof(*e) || c->stack_size > size - sizeof(*e))
		return -EPROTO;
	/* The code that made this event may have been mapped after we looked last. */
	if (c->timestamp >= s->maps_known_ns)
		read_sideband(s);
	memcpy(ev.regs, c->regs_snapshot, sizeof(c->regs_snapshot));
	if (s->mode != MLK_STACK_RAW && c->flags & DWUNW_EVENT_RETURN_ADDRESS)
		drop_scratch(ev.regs);
	s->allocs++;
	return mlk_writer_event(s->writer, &ev);
}

/* Of a program that could not be looked at, most often because it had ended by then: the probes may
 * have met it all the same, for its files are those of the one before. */
static void judge_exec(struct session *s)
{
	s->execs_lost += (s->exec_in_doubt || s->execed_ns) && !s->seen_since_exec;
	s->exec_in_doubt = false;
}

static int take_small(struct session *s, const struct event_small *e, size_t size)
{
	struct mlk_event ev = {.kind = (uint8_t)e->type,
			       .flags = e->nested ? MLK_EVENT_NESTED : 0,
			       .tgid = e->tgid,
			       .tid = e->tid,
			       .time_ns = e->time_ns,
			       .addr = e->addr};

	if (size < sizeof(*e))
		return -EPROTO;
	if (e->type == EVENT_UNMAP) {
		if (size < sizeof(struct event_range))
			return -EPROTO;
		ev.size = ((const struct event_range *)e)->size;
	}
	s->frees += e->type == EVENT_FREE || e->type == EVENT_RELEASE;
	if (e->type == EVENT_EXEC && !s->preload) {
		judge_exec(s);
		s->execed_ns = e->time_ns;
		s->seen_since_exec = false;
		/* Probes belong to the main thread's task, which is gone when another calls exec.
		 */
		s->links_dead |= e->nested;
	}
	return mlk_writer_event(s->writer, &ev);
}

/* An event from the ring.  Negative: stop consuming. */
static int on_event(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	const struct event_alloc *alloc = data;
	const struct event_small *small = data;
	int err;

	if (s->err)
		return s->err;
	if (*(const uint32_t *)data == EVENT_ALLOC) {
		s->seen_since_exec = true;
		err = take_alloc(s, alloc, size);
		fail(s, err ? err : threads_see(&s->threads, alloc->capture.tid));
	} else {
		err = take_small(s, small, size);
		fail(s, err ? err : threads_see(&s->threads, small->tid));
	}
	if (s->err)
		return s->err;
	return ++s->batch >= BATCH ? -EAGAIN : 0;
}

/* Put the probes on the allocators that the target has mapped now. */
static int place(struct session *s, struct allocators *now)
{
	uint64_t start_ns = session_now_ns();
	int err = probes_place(s->probes, &s->target, now);

	if (err) {
		allocators_release(now);
		return err;
	}
	allocators_release(&s->allocators);
	s->allocators = *now;
	s->attach_ns = session_now_ns() - start_ns;
	return 0;
}

/* Another program runs.  As soon as its libraries are mapped, see to it that the probes are where
 * it allocates; on the same files they are still in place. */
static void follow_exec(struct session *s)
{
	bool is_static = !target_auxv(&s->target, AT_BASE);
	uint64_t execed_ns = s->execed_ns;
	struct allocators now;
	int err;

	if (!is_static && !objects_complete(&s->target, false) &&
	    session_now_ns() - s->execed_ns < FIND_NS)
		return;
	s->execed_ns = 0;
	if (poll(&(struct pollfd){.fd = s->target.pidfd, .events = POLLIN}, 1, 0) == 1) {
		s->exec_in_doubt = true;
		return;
	}
	target_describe(&s->target);
	err = allocators_find(&now, &s->target, &s->allocator_opts);
	if (!err && !s->links_dead && allocators_same(&now, &s->allocators)) {
		allocators_release(&s->allocators);
		s->allocators = now;
		probes_set_code(s->probes, &now);
	} else if (!err) {
		err = place(s, &now);
		if (!err)
			log_info("process %d runs '%s' now; recorded from %.1f ms after its start",
				 (int)s->target.pid, s->target.comm,
				 (double)(session_now_ns() - execed_ns) / 1e6);
	} else {
		allocators_release(&now);
	}
	s->exec_in_doubt = err != 0;
	s->links_dead = false;
}

static bool read_maps_now(void *ctx, struct maps *maps)
{
	struct session *s = ctx;

	target_describe(&s->target); /* another program may have been started by exec */
	if (maps_read(maps, s->target.task))
		return false;
	maps_keep_code(maps);
	for (size_t i = 0; i < maps->nr; i++)
		fail(s, modules_identify(&s->modules, &s->target, s->writer, &maps->v[i]));
	return true;
}

static void on_maps(void *ctx, uint64_t time_ns, struct maps *maps)
{
	struct session *s = ctx;
	struct maps before = s->maps;

	s->maps = *maps;
	*maps = before;
	write_maps(s, time_ns);
	set_code(s);
}

bool session_drain(struct session *s)
{
	bool drained;

	if (s->preload) {
		s->batch = 0;
		return preload_consume(s->preload, s->end_ns != 0) != -EAGAIN;
	}
	read_sideband(s);
	s->batch = 0;
	drained = probes_consume(s->probes) != -EAGAIN;
	if (s->execed_ns && drained)
		follow_exec(s);
	return drained;
}

bool session_is_quiet(const struct session *s)
{
	return !s->allocs && !s->frees;
}

void session_explain_quiet(struct session *s)
{
	if (!s->quiet_told && s->preload)
		log_warn("no event in process %d so far: it allocates nothing, or by an allocator "
			 "of "
			 "its own, which a preloaded library does not see",
			 (int)s->target.pid);
	else if (!s->quiet_told)
		quiet_explain(&s->target, &s->allocators, s->cpu_ticks);
	s->quiet_told = true;
}

void session_losses(const struct session *s, struct mlk_losses *losses)
{
	memset(losses, 0, sizeof(*losses));
	if (s->probes)
		probes_losses(s->probes, losses);
	if (s->preload)
		preload_losses(s->preload, losses);
	losses->count[MLK_LOST_MAPS] += s->maps_lost;
	losses->count[MLK_LOST_MODULE] += s->modules.unreadable;
	losses->count[MLK_LOST_EXEC] += s->execs_lost;
}

/* Where the main thread has ended, the probes go by another thread: find a new one if that ended.
 */
static void follow_thread(struct session *s)
{
	pid_t before = s->target.task;
	struct allocators now;

	if (before == s->target.pid)
		return;
	target_find_task(&s->target);
	if (s->target.task == before)
		return;
	if (allocators_find(&now, &s->target, &s->allocator_opts))
		allocators_release(&now);
	else
		place(s, &now);
}

void session_flush(struct session *s)
{
	struct mlk_losses losses;

	if (s->err)
		return;
	follow_thread(s);
	flush_maps(s);
	session_losses(s, &losses);
	mlk_writer_set_losses(s->writer, &losses);
	fail(s, threads_write(&s->threads, s->target.pid, s->writer));
	fail(s, mlk_writer_flush(s->writer));
}

static int write_meta(struct session *s, const struct session_opts *opts)
{
	struct utsname host;
	struct mlk_meta meta = {
		.command = s->target.command,
		.exe = s->target.exe,
		.comm = s->target.comm,
		.recorder = "mleak " MLEAK_VERSION,
		.backend = s->preload ? "preload" : "bpf uprobes",
		.tgid = (uint64_t)s->target.pid,
		.start_ns = clock_ns(CLOCK_MONOTONIC),
		.realtime_ns = clock_ns(CLOCK_REALTIME),
		.stack_limit = opts->stack_limit,
		.stack_mode = opts->stack_mode,
		.whole_life = s->target.started,
	};

	if (uname(&host))
		return -errno;
	s->start_ns = meta.start_ns;
	meta.hostname = host.nodename;
	meta.kernel = host.release;
	meta.machine = host.machine;
	return mlk_writer_open(&s->writer, opts->fd, &meta, opts->zstd_level);
}

/* Put the probes on the allocators that the target has mapped now. */
static int attach(struct session *s, const struct session_opts *opts)
{
	const struct probes_consumer consumer = {.event = on_event, .ctx = s};
	uint64_t start_ns;
	int err = allocators_find(&s->allocators, &s->target, &opts->allocators);

	if (err)
		return err;
	start_ns = session_now_ns();
	err = probes_attach(&s->probes, &s->target, &s->allocators, opts->link, opts->stack_limit);
	if (err)
		return err;
	s->attach_ns = session_now_ns() - start_ns;
	s->cpu_ticks = quiet_cpu_ticks(&s->target);
	err = probes_set_consumer(s->probes, &consumer);
	if (err)
		log_error("cannot read the events of process %d: %s", (int)s->target.pid,
			  strerror(-err));
	return err;
}

/* The events come from the library that the target was started with. */
static int attach_preload(struct session *s)
{
	const struct preload_sink sink = {
		.event = on_event, .read_maps = read_maps_now, .mapped = on_maps, .ctx = s};

	s->maps_known_ns = UINT64_MAX;
	s->cpu_ticks = quiet_cpu_ticks(&s->target);
	preload_set_sink(s->preload, &sink);
	return 0;
}

int session_start(struct session *s, const struct session_opts *opts)
{
	int err = write_meta(s, opts);

	s->modules.embed = opts->embed;
	s->mode = opts->stack_mode;
	s->allocator_opts = opts->allocators;
	if (err) {
		log_error("cannot write the trace '%s': %s", opts->path, mlk_strerror(err));
		return err;
	}
	err = s->preload ? 0 : sideband_open(&s->sideband, s->target.pid);
	if (err)
		log_warn("cannot listen for new mappings (%s); they are looked for four times a "
			 "second",
			 strerror(-err));
	/* From the time 0: what is mapped now is the best guess for all that comes before. */
	if (!snapshot_maps(s, 0) || s->err) {
		if (s->err)
			log_error("cannot write the trace '%s': %s", opts->path,
				  mlk_strerror(s->err));
		else
			log_error("cannot record process %d: it has ended", (int)s->target.pid);
		return s->err ? s->err : -ESRCH;
	}
	return s->preload ? attach_preload(s) : attach(s, opts);
}

void session_finish(struct session *s, enum mlk_end reason)
{
	int err;

	s->end_ns = session_now_ns();
	if (s->preload)
		preload_stop(s->preload);
	else
		probes_detach(s->probes);
	s->detach_ns = session_now_ns() - s->end_ns;
	while (!s->err && !session_drain(s))
		;
	judge_exec(s);
	if (reason != MLK_END_EXITED && !s->err) {
		flush_maps(s); /* what changed before the end, from when it changed */
		snapshot_maps(s, s->end_ns);
	}
	session_flush(s);
	err = mlk_writer_finish(s->writer, s->err ? MLK_END_ERROR : reason, s->end_ns);
	if (!s->err)
		fail(s, err);
}

void session_release(struct session *s)
{
	probes_free(s->probes);
	preload_free(s->preload);
	sideband_free(s->sideband);
	mlk_writer_free(s->writer);
	allocators_release(&s->allocators);
	maps_release(&s->maps);
	modules_release(&s->modules);
	threads_release(&s->threads);
	target_release(&s->target);
}
