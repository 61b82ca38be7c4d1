/* then_unwind.c - see then_unwind.h */
#include "record/then_unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/privilege/privileges.h"
#include "record/signals.h"

#define NICE 10 /* the program that was recorded may go on */

/* What it does. */
struct then_opts {
	bool into_trace; /* the stacks are written, */
	bool drop_raw;	 /* in place of registers and stacks */
	bool keeps;	 /* what the first report finds is kept for it */
};

struct request {
	bool hurry;
	char path[PATH_MAX];
};

struct then_unwind {
	struct then_opts opts;
	pid_t pid;  /* 0: it has ended */
	int fd;	    /* the request goes there; its end ends the process */
	bool due;   /* there is a request, */
	bool begun; /* and it went there */
	int signal; /* that ended it by way of the recorder, 0: none */
	struct request request;
};

/* Signals that end a recording are not for this process: a terminal sends them to all.  What ends
 * the unwinding is told by the recorder, see watch_pipe(). */
static void ignore_signals(void)
{
	/* and nobody may read what is said */
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
}

/* Root replaces files of other users as they were; file capabilities give no more than the user
 * has. */
static void reduce_privileges(void)
{
	const uint64_t files = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_CHOWN | 1ull << CAP_FOWNER;

	privileges_keep_in_thread(geteuid() ? 0 : files);
}

/* Wait for the request on @fd.  Returns false: there will be none. */
static bool read_request(int fd, struct request *request)
{
	char *to = (char *)request;
	size_t len = 0;

	while (len < sizeof(*request)) {
		ssize_t got = read(fd, to + len, sizeof(*request) - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	return len == sizeof(*request);
}

/* From now on the end of the pipe at @fd is a SIGTERM, and ends the unwinding.  The recorder has no
 * right to send signals: its sandbox began later than this process. */
static bool watch_pipe(int fd)
{
	struct pollfd end = {.fd = fd};
	sigset_t set;

	signal(SIGTERM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* who started the recorder may have blocked it */
	return !fcntl(fd, F_SETSIG, SIGTERM) && !fcntl(fd, F_SETOWN, getpid()) &&
	       !fcntl(fd, F_SETFL, O_ASYNC) && poll(&end, 1, 0) == 0;
}

/* `mleak unwind`, of which that line on stderr says what became of the trace. */
static int unwind(char *path, bool drop_raw)
{
	char *argv[5] = {(char *)"unwind"};
	int argc = 1;

	if (drop_raw)
		argv[argc++] = (char *)"--drop-raw";
	argv[argc++] = (char *)"--";
	argv[argc++] = path;
	return cmd_unwind(argc, argv);
}

/* In a process of its own, which a signal or a lack of memory may end: what was unwound is written,
 * and no failure is told of it. */
static void keep(int fd, const char *path)
{
	pid_t pid;

	signal(SIGTERM, SIG_IGN);
	pid = fork();
	if (!pid) {
		if (watch_pipe(fd))
			keep_results(path);
		exit(EXIT_OK);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int wait_and_unwind(int fd, const struct then_opts *opts)
{
	struct request request;
	int status = EXIT_OK;

	reduce_privileges();
	if (!read_request(fd, &request))
		return EXIT_OK;
	(void)!nice(NICE);
	signal(SIGCHLD, SIG_DFL); /* ignored, nothing could be waited for */
	if (opts->into_trace)
		status = watch_pipe(fd) ? unwind(request.path, opts->drop_raw) : EXIT_FAILED;
	if (status == EXIT_OK && opts->keeps && !request.hurry)
		keep(fd, request.path);
	return status;
}

/* Returns 0 or -errno. */
static int start(struct then_unwind *t)
{
	const struct then_opts opts = t->opts;
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL); /* what waits here is not to be written twice */
	t->pid = fork();
	err = t->pid < 0 ? -errno : 0;
	if (!t->pid) {
		ignore_signals();
		close(fds[1]);
		free(t); /* it is the recorder's */
		exit(wait_and_unwind(fds[0], &opts));
	}
	close(fds[0]);
	if (err)
		close(fds[1]);
	t->fd = fds[1];
	return err;
}

/* After a command comes a report, mostly.  A process that was attached to goes on: CPU time is for
 * that, if nothing else was asked for. */
static struct then_opts opts_of(const struct record_opts *o)
{
	const bool one_file = o->output.pipe < 0 && !o->several.on && !o->kernel && !o->dry_run;

	return (struct then_opts){
		.into_trace = one_file && o->unwind,
		.drop_raw = o->drop_raw,
		.keeps = one_file && !o->no_cache && (o->argv || o->unwind),
	};
}

int then_unwind_start(struct then_unwind **out, const struct record_opts *o)
{
	const struct then_opts opts = opts_of(o);
	struct then_unwind *t;
	int err;

	*out = NULL;
	if (!opts.into_trace && !opts.keeps)
		return 0;
	t = calloc(1, sizeof(*t));
	if (t)
		t->opts = opts;
	err = t ? start(t) : -ENOMEM;
	if (!err) {
		*out = t;
		return 0;
	}
	free(t);
	if (!opts.into_trace)
		return 0; /* the report does it */
	log_error("cannot make a process that unwinds the trace: %s", strerror(-err));
	return err;
}

static void send_request(struct then_unwind *t)
{
	const struct request request = t->request;

	/* a pipe has room for it, and of a process that has ended the status tells */
	(void)!write(t->fd, &request, sizeof(request));
	t->begun = true;
}

void then_unwind_begin(struct then_unwind *t, const char *path, bool hurry)
{
	if (!t)
		return;
	t->request.hurry = hurry;
	memcpy(t->request.path, path, strlen(path) + 1);
	t->due = true;
	signal(SIGCHLD, SIG_DFL); /* if ignored, nothing could be waited for */
	if (t->opts.into_trace)
		send_request(t);
}

/* Take the signals that came before: they belonged to the recording, or to its command.  Returns
 * whether one of them tells the recorder to end. */
static bool take_signals(void)
{
	const struct timespec at_once = {0};
	bool told = false;
	sigset_t set;
	int sig;

	signals_of_ours(&set);
	while ((sig = sigtimedwait(&set, NULL, &at_once)) > 0)
		told |= sig == SIGTERM || sig == SIGHUP;
	return told;
}

/* Wait for the end of the process, which a signal brings about.  Returns its wait status, or -1. */
static int wait_for_end(struct then_unwind *t)
{
	sigset_t set;
	int status;

	signals_of_ours(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		pid_t got = waitpid(t->pid, &status, WNOHANG);
		int sig;

		if (got)
			return got == t->pid ? status : -1;
		sig = sigwaitinfo(&set, NULL);
		if (t->fd >= 0 && sig > 0 && sig != SIGCHLD && sig != SIGUSR1 && sig != SIGUSR2) {
			close(t->fd);
			t->fd = -1;
			t->signal = sig;
		}
	}
}

/* A line of progress may be there still, and a Ctrl-C behind it. */
static void end_line(void)
{
	if (isatty(STDERR_FILENO) && !log_is_quiet())
		fputc('\n', stderr);
}

/* Why the trace has no stacks, by the wait status @status.  The SIGTERM that the end of the pipe
 * brings about is ours alone: the user is told of the signal that the recorder got. */
static void explain_end(const struct then_unwind *t, int status)
{
	const char *option = t->opts.drop_raw ? "--drop-raw " : "";
	const char *path = t->request.path;

	if (t->signal)
		log_error("SIG%s ended the unwinding: the trace stays as it was recorded, and is "
			  "whole; to unwind it: mleak unwind %s%s",
			  sigabbrev_np(t->signal), option, path);
	else if (status > 0 && WIFSIGNALED(status))
		log_error("unwinding the trace was ended by signal %d: it stays as it was "
			  "recorded; to unwind it: mleak unwind %s%s",
			  WTERMSIG(status), option, path);
	else
		log_error("the trace stays as it was recorded; to try it again: mleak unwind %s%s",
			  option, path);
}

int then_unwind_finish(struct then_unwind *t, bool hurry)
{
	int status;

	if (!t || !t->due)
		return 0;
	t->due = false;
	hurry |= take_signals() || t->request.hurry;
	if (!t->begun && hurry)
		return 0;
	if (!t->begun)
		send_request(t);
	status = wait_for_end(t);
	t->pid = 0;
	if (t->fd < 0)
		end_line();
	if (!status || !t->opts.into_trace)
		return 0;
	explain_end(t, status);
	return -1;
}

void then_unwind_free(struct then_unwind *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	if (t->pid)
		waitpid(t->pid, NULL, 0);
	free(t);
}
