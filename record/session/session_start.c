/* session_start.c - how a session begins */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/base/reader_wait.h"
#include "record/base/rlimits.h"
#include "record/privilege/privileges.h"
#include "record/ptrace/tracer.h"
#include "record/session/interpreted.h"
#include "record/session/no_events.h"
#include "record/session/session.h"
#include "record/target/threads.h"
#include "record/trace/write_failed.h"

/* Where processes wait for a processor, the one that empties the ring goes before those that fill
 * it; and the one that attaches the probes before all of them. */
#define NICENESS (-10)
#define URGENT	 (-20) /* the niceness that goes before all others */

/* Nobody else hears a signal until all is set up. */
static bool gives_up(void *arg)
{
	struct session *s = arg;

	waiting_for(&s->waiting, READER_WAITED, 0, 0);
	return reader_told_to_end();
}

int session_write_meta(struct session *s, const struct session_opts *opts)
{
	const struct target *t = &s->all[0]->target;
	struct utsname host;
	struct stat st;
	struct mlk_meta meta = {
		.command = t->command,
		.exe = t->exe,
		.comm = t->comm,
		.recorder = "mleak " MLEAK_VERSION,
		.backend = s->backend->name,
		.tgid = (uint64_t)t->pid,
		.start_ns = clock_ns(CLOCK_MONOTONIC),
		.realtime_ns = clock_ns(CLOCK_REALTIME),
		.stack_limit = opts->stack_limit,
		.stack_mode = opts->stack_mode,
		.ring_size = opts->ring_size,
		.guarded = opts->guard,
		.whole_life = t->started && !s->switched,
	};

	if (uname(&host))
		return -errno;
	/* where the trace before it ended, as events of then may be on their way */
	if (s->switched) {
		meta.realtime_ns -= meta.start_ns - s->time_ns;
		meta.start_ns = s->time_ns;
	}
	s->start_ns = s->time_ns = meta.start_ns;
	filters_describe(&opts->filters, &meta);
	s->memory.followed = !fstat(opts->fd, &st) && S_ISFIFO(st.st_mode);
	meta.hostname = host.nodename;
	meta.kernel = host.release;
	meta.machine = host.machine;
	return mlk_writer_open(&s->out.writer, opts->fd, &meta, opts->zstd_level);
}

/* Returns why there will be no notices of mappings, -errno, or 0. */
static int listen_to(struct session *s)
{
	int err = sideband_open(&s->sideband);

	for (size_t i = 0; !err && i < s->nr; i++)
		err = sideband_add(s->sideband, s->all[i]->target.pid);
	/* One that has ended is found out about later. */
	s->out.listening = !err || err == -ENOENT || err == -ESRCH;
	if (s->out.listening)
		return 0;
	sideband_free(s->sideband);
	s->sideband = NULL;
	return err;
}

static void tell_deaf(int err)
{
	struct refusal_facts facts;
	char why[REFUSAL_TEXT];

	refusal_read_facts(&facts);
	refusal_explain_events(&facts, err, why, sizeof(why));
	log_warn("cannot listen for new mappings: %s; mleak checks for them four times a second",
		 why);
}

/* Of several processes, one that has ended meanwhile is no reason to give up. */
static int skip_ended(struct session *s, struct process *p, int err)
{
	if (!target_is_ending(&p->target) || s->out.err)
		return err;
	if (!session_has_others(s, p)) {
		log_error("cannot record process %d: it has ended", (int)p->target.pid);
		return -ESRCH;
	}
	log_warn("process %d is left out: it has ended before it could be recorded",
		 (int)p->target.pid);
	session_end_process(s, p);
	return 0;
}

/* What its threads are doing now. */
static void take_snapshot(struct session *s, const struct process *p)
{
	const int nice = getpriority(PRIO_PROCESS, 0);
	struct attach_stacks_cost cost;

	/* Else no word of these stacks would pass for code. */
	code_ranges_update(&s->code, &s->out, s->all, s->nr);
	/* Threads are stopped meanwhile: nothing should come between.  Not allowed to all. */
	setpriority(PRIO_PROCESS, 0, URGENT);
	trace_out_fail(&s->out, attach_stacks_write(&p->target, s->out.writer, &cost));
	setpriority(PRIO_PROCESS, 0, nice);
	s->snapshot.threads += cost.threads;
	s->snapshot.stopped_ns += cost.stopped_ns;
	if (cost.longest_ns > s->snapshot.longest_ns)
		s->snapshot.longest_ns = cost.longest_ns;
}

static int prepare(struct session *s, struct process *p)
{
	int err;

	/* From the time 0: what is mapped now is the best guess for all that comes before. */
	if (!process_snapshot(p, &s->out, 0)) {
		if (!target_has_ended(&p->target) && !s->out.err)
			log_error("cannot read the mappings of process %d (the limit on open "
				  "files, ulimit -n, may be too low)",
				  (int)p->target.pid);
		return skip_ended(s, p, -ESRCH);
	}
	trace_out_fail(&s->out, threads_name(&p->threads, (uint32_t)p->target.pid, p->target.comm));
	session_look_for_interpreter(s, p, &p->maps, NULL, 0);
	if (s->names_threads)
		trace_out_fail(&s->out, threads_see_all(&p->threads, &p->target));
	if (s->out.err)
		return s->out.err;
	if (!p->target.started && s->backend->probes)
		take_snapshot(s, p);
	if (!s->backend->probes)
		return 0;
	err = allocators_find(&p->allocators, &p->target, &s->allocator_opts);
	return err ? skip_ended(s, p, err) : 0;
}

static int place(struct session *s, struct process *p)
{
	int err = probes_place(s->probes, &p->links, &p->target, &p->allocators);

	/* What was examined may have been another process with its number. */
	if (!err && !p->target.started && target_is_reaped(&p->target))
		err = -ESRCH;
	return err;
}

/* *failed is the process whose probes could not be attached. */
static int place_all(struct session *s, const struct process **failed)
{
	for (size_t i = 0; i < s->nr; i++) {
		struct process *p = s->all[i];
		int err = 0;

		waiting_for(&s->waiting, "the kernel to attach the probes of a process", i + 1,
			    s->nr);
		if (!p->ended)
			err = place(s, p);
		if (err && session_has_others(s, p))
			err = skip_ended(s, p, err);
		if (err) {
			*failed = p;
			return err;
		}
		p->probed = true;
		/* From before it is recorded no notice comes. */
		p->leader.ended = p->leader.due = target_lacks_main(&p->target);
		p->cpu_ticks = no_events_cpu_ticks(&p->target);
	}
	return 0;
}

/* The loading of the programs, which takes as long as looking at the processes: it is done beside
 * that, in a thread of its own where there can be one. */
struct loading {
	struct probes_opts opts;
	struct probes *probes;
	bool judged; /* by the verifier */
	int err;
	pthread_t thread;
	bool started;
};

static void *load(void *arg)
{
	struct loading *l = arg;

	l->err = probes_load(&l->probes, &l->opts, &l->judged);
	return NULL;
}

static void loading_begin(struct loading *l, const struct session *s,
			  const struct session_opts *opts)
{
	l->opts = (struct probes_opts){.link = opts->link,
				       .stack_limit = opts->stack_limit,
				       .ring_size = opts->ring_size,
				       .filters = &opts->filters,
				       .follow = opts->follow,
				       .by_ret = opts->allocators.returns == RETURNS_RET};
	/* To find that out by loading the programs in vain takes as long as the rest. */
	if (opts->link == PROBE_LINK_AUTO && !kernel_has_multi())
		l->opts.link = PROBE_LINK_PERF;
	for (size_t i = 0; i < s->nr; i++)
		l->opts.by_thread |= s->all[i]->target.task != s->all[i]->target.pid;
	l->started = !pthread_create(&l->thread, NULL, load, l);
}

/* Wait until the programs are loaded: *probes, which is NULL on failure.  Returns as probes_load().
 */
static int loading_end(struct loading *l, struct probes **probes)
{
	if (l->started)
		pthread_join(l->thread, NULL);
	else
		load(l);
	l->started = false;
	*probes = l->probes;
	return l->err;
}

/* As place_all(), when the loading has ended; on failure nothing is left, and *refusal says what
 * was refused. */
static int place_loaded(struct session *s, struct loading *l, struct refusal *refusal,
			const struct process **failed)
{
	int err = loading_end(l, &s->probes);

	*failed = s->all[0];
	refusal->stage = !err ? REFUSED_PROBES : l->judged ? REFUSED_VERIFIER : REFUSED_LOAD;
	refusal->perf = s->probes && !probes_are_multi(s->probes);
	if (!err)
		err = place_all(s, failed);
	refusal->err = err;
	if (!err)
		return 0;
	for (size_t i = 0; s->probes && i < s->nr; i++)
		probes_drop(s->probes, &s->all[i]->links);
	probes_free(s->probes);
	s->probes = NULL;
	return err;
}

/* Have the children of processes that run already held at their start.  Those that are born while
 * the probes are put in are let go with the first that come later. */
static void trace_all(struct session *s)
{
	for (size_t i = 0; s->follow && i < s->nr; i++) {
		struct target *t = &s->all[i]->target;
		int err;

		if (t->started)
			continue; /* it is traced from its start */
		err = tracer_attach(&s->tracer, t->pid);
		s->all[i]->traced = !err;
		s->all[i]->traced_ns = clock_now_ns();
		if (err)
			log_warn("cannot stop the children of process %d at their start (%s): they "
				 "are recorded from some milliseconds after it",
				 (int)t->pid,
				 err == -EPERM ? privileges_no_ptrace() : strerror(-err));
	}
}

/* Other links, @opts, may need other places. */
static int find_again(struct session *s, const struct probes_opts *opts)
{
	bool before = s->allocator_opts.spares_handlers;
	int err = 0;

	s->allocator_opts.spares_handlers = probes_spare_handlers(opts);
	for (size_t i = 0; !err && before && i < s->nr; i++) {
		struct process *p = s->all[i];

		if (p->ended)
			continue;
		allocators_release(&p->allocators);
		err = allocators_find(&p->allocators, &p->target, &s->allocator_opts);
		err = err ? skip_ended(s, p, err) : 0;
	}
	return err;
}

/* Put the probes on the allocators that the processes have mapped now. */
static int attach(struct session *s, const struct session_opts *opts, struct loading *l)
{
	const struct probes_consumer consumer = {.event = write_event, .ctx = s};
	uint64_t start_ns = clock_now_ns();
	struct refusal refusal = {.link = opts->link, .force = opts->force};
	const struct process *failed;
	int err;

	waiting_for(&s->waiting, "the kernel to check the BPF programs", 0, 0);
	err = place_loaded(s, l, &refusal, &failed);
	if (err && l->opts.link == PROBE_LINK_AUTO && err != -EPERM && err != -ESRCH) {
		l->opts.link = PROBE_LINK_PERF;
		err = find_again(s, &l->opts);
		if (!err)
			err = place_loaded(s, l, &refusal, &failed);
	}
	s->attach_ns = clock_now_ns() - start_ns;
	waiting_end(&s->waiting);
	if (err && opts->falls_back && !target_is_ending(&failed->target))
		s->refusal = refusal;
	else if (err)
		probes_refused(&failed->target, &refusal);
	if (err)
		return err;
	err = probes_set_consumer(s->probes, &consumer);
	if (err) {
		log_error("cannot read the events of process %d: %s%s", (int)s->pid, strerror(-err),
			  err == -ENOMEM ? rlimits_of_memory() : "");
		return err;
	}
	session_tell_of_interpreters(s);
	/* All at once, and not before they can be taken in. */
	s->armed_ns = clock_now_ns();
	probes_begin(s->probes, &opts->filters);
	return 0;
}

int session_prepare_all(struct session *s, const struct session_opts *opts)
{
	int err = 0;

	for (size_t i = 0; !err && i < s->nr; i++) {
		waiting_for(&s->waiting, "a process to be examined", i + 1, s->nr);
		err = prepare(s, s->all[i]);
	}
	if (err && s->out.err)
		write_failed_tell(opts->path, err, false);
	return err;
}

int session_start_bpf(struct session *s, const struct session_opts *opts)
{
	struct loading loading = {0};
	int err, deaf;

	s->names_threads = filters_by_thread(&opts->filters);
	loading_begin(&loading, s, opts);
	s->allocator_opts.spares_handlers = probes_spare_handlers(&loading.opts);
	deaf = listen_to(s); /* to its first event, too, a kernel has to wait for itself */
	children_note_running(s);
	err = session_prepare_all(s, opts);
	if (!err)
		trace_all(s);
	s->placing_ns = clock_now_ns();
	if (err) {
		/* no process can be recorded, as was logged: nobody waits for what comes now */
		waiting_end(&s->waiting);
		loading_end(&loading, &s->probes); /* session_release() frees it */
		return err;
	}
	err = attach(s, opts, &loading);
	if (!err && deaf)
		tell_deaf(deaf);
	if (!err)
		children_tell_running(s);
	return err;
}

int session_start_preload(struct session *s, const struct session_opts *opts)
{
	const struct preload_sink sink = session_sink(s);
	int err;

	s->out.listening = true; /* the library tells */
	err = session_prepare_all(s, opts);
	s->placing_ns = clock_now_ns();
	if (err)
		return err;
	s->maps_known_ns = UINT64_MAX;
	s->armed_ns = clock_now_ns();
	s->all[0]->probed = true;
	s->all[0]->cpu_ticks = no_events_cpu_ticks(&s->all[0]->target);
	preload_set_sink(s->preload, &sink);
	allocators_tell_of_prefixed(&s->all[0]->target);
	return 0;
}

int session_start_look(struct session *s, const struct session_opts *opts)
{
	int err;

	s->out.listening = true; /* for so short a time */
	err = session_prepare_all(s, opts);
	s->placing_ns = s->armed_ns = clock_now_ns();
	s->maps_known_ns = UINT64_MAX;
	for (size_t i = 0; i < s->nr; i++)
		s->all[i]->probed = true;
	return err;
}

int session_start(struct session *s, const struct session_opts *opts)
{
	int niceness = getpriority(PRIO_PROCESS, 0), err;

	s->backend = s->looks	  ? &backend_look
		     : s->inject  ? &backend_inject
		     : s->preload ? &backend_preload
				  : &backend_bpf;
	err = session_write_meta(s, opts);
	if (!err)
		mlk_writer_patience(s->out.writer, gives_up, s);
	s->out.modules.embed = opts->embed;
	s->mode = opts->stack_mode;
	s->follow = opts->follow;
	s->stack_limit = opts->stack_limit;
	s->no_file_names = s->codes.no_files = opts->no_file_names;
	s->allocator_opts = opts->allocators;
	if (err) {
		write_failed_tell(opts->path, err, false);
		return err;
	}
	/* Of this thread, and those that it begins from here on: not of the one that compresses.
	 * It is not allowed to all, nor to us once privileges are given up.  Who only looks at
	 * memory is in no hurry. */
	if (!s->looks)
		setpriority(PRIO_PROCESS, 0, NICENESS);
	waiting_begin(&s->waiting);
	err = s->backend->start(s, opts);
	waiting_end(&s->waiting);
	if (err) /* a command that is started then, in another way, would have it too */
		setpriority(PRIO_PROCESS, 0, niceness);
	return err;
}
