/* then_unwind.c - see then_unwind.h */
#include "record/then_unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/privilege/privileges.h"
#include "record/signals.h"

#define NICE 10 /* the program that was recorded may go on */

struct then_unwind {
	pid_t pid;  /* 0: it has ended */
	int fd;	    /* the path goes there; its end ends the process */
	bool begun; /* the path went there */
};

/* Signals that end a recording are not for this process: a terminal sends them to all.  What ends
 * the unwinding is told by the recorder, see watch_pipe(). */
static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

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

/* Wait for the path on @fd.  Returns false: there will be none. */
static bool read_path(int fd, char path[PATH_MAX])
{
	size_t len = 0;

	while (len < PATH_MAX && (!len || path[len - 1])) {
		ssize_t got = read(fd, path + len, PATH_MAX - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	return len && !path[len - 1];
}

/* From now on the end of the pipe at @fd is a SIGTERM, and ends the unwinding.  The recorder has no
 * right to send signals: its sandbox began later than this process. */
static bool watch_pipe(int fd)
{
	struct pollfd end = {.fd = fd};

	signal(SIGTERM, SIG_DFL);
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
	unsetenv("MLEAK_CACHE"); /* it is for reports, and is not to be examined now */
	return cmd_unwind(argc, argv);
}

static int wait_and_unwind(int fd, bool drop_raw)
{
	char path[PATH_MAX];

	reduce_privileges();
	if (!read_path(fd, path))
		return EXIT_OK;
	(void)!nice(NICE);
	return watch_pipe(fd) ? unwind(path, drop_raw) : EXIT_FAILED;
}

/* Returns 0 or -errno. */
static int start(struct then_unwind *t, bool drop_raw)
{
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
		exit(wait_and_unwind(fds[0], drop_raw));
	}
	close(fds[0]);
	if (err)
		close(fds[1]);
	t->fd = fds[1];
	return err;
}

int then_unwind_start(struct then_unwind **out, bool drop_raw)
{
	struct then_unwind *t = calloc(1, sizeof(*t));
	int err = t ? start(t, drop_raw) : -ENOMEM;

	*out = err ? NULL : t;
	if (!err)
		return 0;
	free(t);
	log_error("cannot make a process that unwinds the trace: %s", strerror(-err));
	return err;
}

void then_unwind_begin(struct then_unwind *t, const char *path)
{
	if (!t)
		return;
	/* a pipe has room for it, and of a process that has ended the status tells */
	(void)!write(t->fd, path, strlen(path) + 1);
	t->begun = true;
}

/* Wait for the end of the process, which a signal brings about.  Returns its wait status, or -1. */
static int wait_for_end(struct then_unwind *t)
{
	const struct timespec at_once = {0};
	sigset_t set;
	int status;

	signals_of_ours(&set);
	/* those that came before belonged to the recording, or to its command */
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
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
		}
	}
}

int then_unwind_finish(struct then_unwind *t)
{
	int status;

	if (!t || !t->begun)
		return 0;
	t->begun = false;
	status = wait_for_end(t);
	t->pid = 0;
	if (!status)
		return 0;
	if (status > 0 && WIFSIGNALED(status))
		log_error("unwinding the trace was ended by signal %d: it stays as it was recorded",
			  WTERMSIG(status));
	else
		log_error("the trace stays as it was recorded; 'mleak unwind' tries it again");
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
