/* event_loop.c - epoll over the rings, the notices, the target and the signals */
#include "record/event_loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/ctl_answer.h"
#include "record/ptrace/tracer.h"
#include "record/signals.h"

#define DRAIN_NS 50000000u  /* how long a few events may wait in the rings, */
#define EXEC_NS	 1000000u   /* and when a new program waits for its probes */
#define PACE_NS	 100000u    /* however many events there are, we wait so long until we look again */
#define BUSY_NS	 3000000u   /* if that is no longer than this, nothing need wake us */
#define FLUSH_NS 250000000u /* what came so long ago is not lost by a kill -9 */

#define BUSY_RING (16u << 20) /* a smaller ring might be full before we look again */

#define SWITCH_NS 200000000u /* what waits is read for so long before another trace begins */

#define QUIET_NS 1000000000u /* so long may nothing at all be seen before we say why */

enum source { SOURCE_RING, SOURCE_SIDEBAND, SOURCE_TRACER, SOURCE_SIGNAL };

struct loop {
	struct session *session;
	int epoll, signals;
	uint64_t start_ns, end_ns, next_flush_ns, next_sample_ns, next_reach_ns;
	uint64_t reach_begun_ns; /* the last snapshot */
	bool told_unprobed;
	bool behind; /* what reads the trace from a pipe: nothing more is written meanwhile */
	uint64_t max_size;
	uint32_t ring_size;
	struct ctl_answer asked;
	struct control *control;
	const struct event_loop_opts *opts;
	bool reaches;	     /* a snapshot of the pointers is under way */
	int interrupts;	     /* SIGINT and SIGQUIT while a command runs */
	enum mlk_end reason; /* 0: go on */
	struct progress progress;
};

/* @how: EPOLLET where available data is no news, because it is read each time anyway. */
static void watch(struct loop *l, int fd, enum source source, uint32_t how)
{
	struct epoll_event ev = {.events = EPOLLIN | how, .data.u64 = (uint64_t)fd << 32 | source};

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) && !l->session->out.err)
		l->session->out.err = -errno;
}

static void open_loop(struct loop *l)
{
	struct session *s = l->session;
	sigset_t set;
	int fd;

	signals_of_ours(&set);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->epoll < 0 || l->signals < 0) {
		s->out.err = -errno;
		return;
	}
	for (int i = 0; (fd = s->backend->fd(s, i)) >= 0; i++)
		watch(l, fd, SOURCE_RING, s->backend->probes ? EPOLLET : 0);
	if (s->tracer)
		watch(l, tracer_fd(s->tracer), SOURCE_TRACER, 0);
	watch(l, l->signals, SOURCE_SIGNAL, 0);
	for (int i = 0; s->sideband && (fd = sideband_fd(s->sideband, i)) >= 0; i++)
		watch(l, fd, SOURCE_SIDEBAND, 0);
}

static void on_signal(struct loop *l, int sig)
{
	pid_t command = l->session->command;
	/* What a command has left behind is no longer its own. */
	bool runs = command && session_newest(l->session, command);

	if (sig == SIGUSR1)
		session_record_all_threads(l->session);
	else if (sig == SIGUSR2)
		ctl_on_signal(&l->asked);
	else if (!runs) {
		l->reason = MLK_END_SIGNAL;
		l->session->told_to_end = command || sig == SIGTERM || sig == SIGHUP;
	} else if (sig == SIGTERM || sig == SIGHUP) {
		signals_pass_on(command, sig, l->session->helper);
		l->session->told_to_end = true;
	} else if (++l->interrupts > 1) {
		l->reason = MLK_END_SIGNAL;
		l->session->told_to_end = true;
	}
}

static void take_signals(struct loop *l)
{
	struct signalfd_siginfo info;

	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(l, (int)info.ssi_signo);
}

/* Processes are held for us: attach their probes, and let them go. */
static void take_held(struct loop *l)
{
	struct session *s = l->session;
	struct tracer_event event;

	while (tracer_next(s->tracer, &event)) {
		bool to_start = false;

		if (event.what == TRACER_EXIT) {
			session_reach_at_exit(s, event.pid);
			l->reaches = true; /* or there is nothing to do at the next step */
			continue;
		}
		if (event.what == TRACER_CHILD)
			children_held(s, event.pid);
		else if (event.what == TRACER_START)
			exec_at_start(s, event.pid);
		else
			to_start = exec_held(s, event.pid);
		tracer_let_go(s->tracer, event.pid, to_start);
	}
}

/* Nanoseconds until something is due. */
static uint64_t patience(const struct loop *l, uint64_t now_ns)
{
	uint64_t wait = DRAIN_NS, pace = DRAIN_NS;

	if (l->session->probes)
		pace = probes_pace(l->session->probes, now_ns);
	if (pace < wait)
		wait = pace > PACE_NS ? pace : PACE_NS;
	if (wait > EXEC_NS &&
	    (l->reaches || session_is_urgent(l->session) || control_is_asked(l->control)))
		wait = EXEC_NS;
	if (l->next_sample_ns < now_ns + wait)
		wait = l->next_sample_ns > now_ns ? l->next_sample_ns - now_ns : 0;
	if (l->end_ns && l->end_ns < now_ns + wait)
		wait = l->end_ns > now_ns ? l->end_ns - now_ns : 0;
	return wait;
}

/* Until something comes, but no longer than @wait_ns, below a second.  When we look again soon, we
 * need not be woken, which costs the target; but a small ring might be full before that. */
static void wait_for(struct loop *l, uint64_t wait_ns)
{
	const struct timespec ts = {.tv_nsec = (long)wait_ns};
	struct pollfd any = {.fd = l->epoll, .events = POLLIN};

	if (l->session->probes)
		probes_wait(l->session->probes, wait_ns > BUSY_NS || l->ring_size < BUSY_RING);
	ppoll(&any, 1, &ts, NULL);
	if (l->session->probes)
		probes_wait(l->session->probes, false);
}

static void wait_and_take(struct loop *l, bool drained)
{
	struct epoll_event events[16];
	int n;

	if (drained)
		wait_for(l, patience(l, clock_now_ns()));
	n = epoll_wait(l->epoll, events, 16, 0);
	if (n < 0 && errno != EINTR && !l->session->out.err)
		l->session->out.err = -errno;
	for (int i = 0; i < n; i++) {
		enum source source = (enum source)(uint32_t)events[i].data.u64;

		if (source == SOURCE_SIGNAL)
			take_signals(l);
		else if (source == SOURCE_TRACER)
			take_held(l);
		/* The ring and the notices are drained each time anyway.  Those of a thread that
		 * has ended hang up forever. */
		else if (source == SOURCE_SIDEBAND && events[i].events & EPOLLHUP)
			epoll_ctl(l->epoll, EPOLL_CTL_DEL, (int)(events[i].data.u64 >> 32), NULL);
	}
}

/* A snapshot is over: if that is wanted, it took a tenth of the time at most. */
static void spare_time(struct loop *l)
{
	const uint64_t now_ns = clock_now_ns();
	const uint64_t next_ns = now_ns + 9 * (now_ns - l->reach_begun_ns);

	if (l->opts->reach_spare && l->next_reach_ns && l->next_reach_ns < next_ns)
		l->next_reach_ns = next_ns;
}

/* Take the pointers in memory, when they are due.  Returns whether that is under way. */
static bool reach(struct loop *l, uint64_t now_ns)
{
	if (l->reaches || l->session->reach.now) {
		l->reaches = session_reach_step(l->session);
		if (!l->reaches)
			spare_time(l);
	}
	if (!l->reaches && l->next_reach_ns && now_ns >= l->next_reach_ns) {
		l->reaches = session_reach_begin(l->session);
		l->reach_begun_ns = now_ns;
		l->next_reach_ns = now_ns + l->opts->reach_ns;
	}
	return l->reaches;
}

/* Another trace begins.  What happened before somebody asked for it belongs into the one that ends:
 * it may still be in the rings. */
static void switch_trace(struct loop *l, uint64_t now_ns)
{
	struct switcher *sw = l->asked.switcher;

	if (sw->due)
		session_drain_for(l->session, SWITCH_NS);
	if (!l->session->out.err)
		switch_now(sw, switch_reason(sw, now_ns));
}

/* Events wait for others of their chunk until the first of them is old. */
static void flush_old_events(struct loop *l, uint64_t now_ns)
{
	struct trace_out *out = &l->session->out;

	if (!out->err)
		trace_out_fail(out, mlk_writer_flush_old(out->writer, now_ns, FLUSH_NS));
}

/* Take the events that have come.  What reads the trace from a pipe may be slow, or stopped: who
 * waits for it here hears no signal, and leaves the probes, or threads that wait for room in their
 * rings, beyond the time.  Returns whether all were taken. */
static bool take_events(struct loop *l)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	l->behind = !l->session->out.err && mlk_writer_is_behind(l->session->out.writer);
	if (l->behind)
		nanosleep(&moment, NULL);
	return !l->behind && session_drain(l->session);
}

static void on_time(struct loop *l)
{
	uint64_t now_ns = clock_now_ns();

	if (l->end_ns && now_ns >= l->end_ns && !l->reason)
		l->reason = MLK_END_DURATION;
	if (!l->session->nr && !l->reason)
		l->reason = MLK_END_EXITED;
	if (l->max_size && mlk_writer_bytes(l->session->out.writer) >= l->max_size && !l->reason)
		l->reason = MLK_END_SIZE;
	control_serve(l->control, now_ns, ctl_answer, &l->asked);
	if (l->behind)
		return;
	/* a snapshot that is under way would be whole in neither trace */
	if (!l->reason && !l->reaches &&
	    switch_is_due(l->asked.switcher, mlk_writer_bytes(l->session->out.writer), now_ns))
		switch_trace(l, now_ns);
	if (l->session->out.err)
		return;
	if (now_ns >= l->start_ns + QUIET_NS && session_is_quiet(l->session)) {
		session_explain_quiet(l->session);
	} else if (now_ns >= l->start_ns + QUIET_NS && !l->told_unprobed) {
		l->told_unprobed = true;
		unprobed_tell(l->session);
	}
	l->next_sample_ns = session_sample_memory(l->session, now_ns);
	reach(l, now_ns);
	flush_old_events(l, now_ns);
	if (now_ns < l->next_flush_ns)
		return;
	session_flush(l->session);
	progress_show(&l->progress, l->session, now_ns);
	l->next_flush_ns = now_ns + FLUSH_NS;
}

/* The recording is asked to end: once more the pointers are taken, until it is asked again. */
static void reach_last(struct loop *l)
{
	struct session *s = l->session;
	enum mlk_end reason = l->reason;
	bool drained = true;
	int status;

	if (l->opts->reach && reason == MLK_END_EXITED && !s->reach.taken)
		log_warn("the memory was not read: the process ended by itself; give --duration, "
			 "or end the recording before");
	if (!l->opts->reach || (reason != MLK_END_SIGNAL && reason != MLK_END_DURATION))
		return;
	/* what is stopped for the last time need not be held at its end */
	if (s->reach.stop && s->tracer)
		tracer_stop(s->tracer, &status);
	l->reason = 0;
	l->end_ns = l->next_reach_ns = 0;
	if (!l->reaches)
		l->reaches = session_reach_begin(s);
	while (l->reaches && !l->reason && !s->out.err) {
		wait_and_take(l, drained);
		drained = take_events(l);
		on_time(l);
	}
	l->reason = reason;
}

enum mlk_end event_loop_run(struct session *s, const struct event_loop_opts *opts)
{
	struct loop l = {.session = s, .start_ns = clock_now_ns(), .opts = opts};
	bool drained = true;

	l.end_ns = opts->duration_ns ? l.start_ns + opts->duration_ns : 0;
	l.max_size = opts->max_size;
	l.ring_size = opts->ring_size;
	l.asked = (struct ctl_answer){s, opts->switcher};
	l.control = opts->control;
	l.next_flush_ns = l.start_ns + FLUSH_NS;
	l.next_reach_ns = opts->reach_ns ? l.start_ns + opts->reach_ns : 0;
	progress_begin(&l.progress, l.start_ns);
	flush_old_events(&l, l.start_ns);
	open_loop(&l);
	s->yields = true;
	mlk_writer_patience(s->out.writer, NULL, NULL); /* signals are heard from now on */
	while (!l.reason && !s->out.err) {
		wait_and_take(&l, drained);
		drained = take_events(&l);
		on_time(&l);
	}
	reach_last(&l);
	s->yields = false;
	log_end_line();
	if (l.epoll >= 0)
		close(l.epoll);
	if (l.signals >= 0)
		close(l.signals);
	return s->out.err ? MLK_END_ERROR : l.reason;
}
