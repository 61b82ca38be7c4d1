/* loop.c - epoll over the ring, the notices, the target and the signals */
#include "record/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "record/progress.h"
#include "record/signals.h"

#define DRAIN_NS 50000000u  /* how long a few events may wait in the ring */
#define EXEC_NS	 1000000u   /* the same when a new program waits for its probes */
#define FLUSH_NS 250000000u /* how much of a recording a kill -9 may cost */

#define QUIET_NS 1000000000u /* so long may nothing at all be seen before we say why */

enum source { SOURCE_RING, SOURCE_SIDEBAND, SOURCE_TARGET, SOURCE_SIGNAL };

struct loop {
	struct session *session;
	int epoll, signals;
	uint64_t start_ns, end_ns, next_flush_ns;
	uint64_t max_size;
	int interrupts;	     /* SIGINT and SIGQUIT while a command runs */
	enum mlk_end reason; /* 0: go on */
	struct progress progress;
};

static void watch(struct loop *l, int fd, enum source source)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)fd << 32 | source};

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) && !l->session->err)
		l->session->err = -errno;
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
		s->err = -errno;
		return;
	}
	watch(l, s->preload ? preload_fd(s->preload) : probes_fd(s->probes), SOURCE_RING);
	watch(l, s->target.pidfd, SOURCE_TARGET);
	watch(l, l->signals, SOURCE_SIGNAL);
	for (int i = 0; s->sideband && (fd = sideband_fd(s->sideband, i)) >= 0; i++)
		watch(l, fd, SOURCE_SIDEBAND);
}

static void on_signal(struct loop *l, int sig)
{
	const struct target *t = &l->session->target;

	if (!t->started)
		l->reason = MLK_END_SIGNAL;
	else if (sig == SIGTERM || sig == SIGHUP)
		kill(t->pid, sig);
	else if (++l->interrupts > 1)
		l->reason = MLK_END_SIGNAL;
}

static void take_signals(struct loop *l)
{
	struct signalfd_siginfo info;

	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(l, (int)info.ssi_signo);
}

/* Milliseconds until something is due. */
static int patience(const struct loop *l, uint64_t now_ns)
{
	uint64_t wait = l->session->execed_ns ? EXEC_NS : DRAIN_NS;

	if (l->end_ns && l->end_ns < now_ns + wait)
		wait = l->end_ns > now_ns ? l->end_ns - now_ns : 0;
	return (int)((wait + 999999) / 1000000);
}

static void wait_and_take(struct loop *l, bool drained)
{
	struct epoll_event events[16];
	int n = epoll_wait(l->epoll, events, 16, drained ? patience(l, session_now_ns()) : 0);

	if (n < 0 && errno != EINTR && !l->session->err)
		l->session->err = -errno;
	for (int i = 0; i < n; i++) {
		enum source source = (enum source)(uint32_t)events[i].data.u64;

		if (source == SOURCE_SIGNAL)
			take_signals(l);
		else if (source == SOURCE_TARGET)
			l->reason = MLK_END_EXITED;
		/* The ring and the notices are drained each time anyway.  Those of a thread that
		 * has ended hang up for ever. */
		else if (source == SOURCE_SIDEBAND && events[i].events & EPOLLHUP)
			epoll_ctl(l->epoll, EPOLL_CTL_DEL, (int)(events[i].data.u64 >> 32), NULL);
	}
}

static void on_time(struct loop *l)
{
	uint64_t now_ns = session_now_ns();

	if (l->end_ns && now_ns >= l->end_ns && !l->reason)
		l->reason = MLK_END_DURATION;
	if (l->max_size && mlk_writer_bytes(l->session->writer) >= l->max_size && !l->reason)
		l->reason = MLK_END_SIZE;
	if (now_ns >= l->start_ns + QUIET_NS && session_is_quiet(l->session))
		session_explain_quiet(l->session);
	if (now_ns < l->next_flush_ns)
		return;
	session_flush(l->session);
	progress_show(&l->progress, l->session, now_ns);
	l->next_flush_ns = now_ns + FLUSH_NS;
}

enum mlk_end loop_run(struct session *s, const struct loop_opts *opts)
{
	struct loop l = {.session = s, .start_ns = session_now_ns()};
	bool drained = true;

	l.end_ns = opts->duration_ns ? l.start_ns + opts->duration_ns : 0;
	l.max_size = opts->max_size;
	l.next_flush_ns = l.start_ns + FLUSH_NS;
	progress_begin(&l.progress, l.start_ns);
	open_loop(&l);
	while (!l.reason && !s->err) {
		wait_and_take(&l, drained);
		drained = session_drain(s);
		on_time(&l);
	}
	progress_end(&l.progress);
	if (l.epoll >= 0)
		close(l.epoll);
	if (l.signals >= 0)
		close(l.signals);
	return s->err ? MLK_END_ERROR : l.reason;
}
