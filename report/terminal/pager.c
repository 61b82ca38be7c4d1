/* pager.c - see pager.h */
#include "report/terminal/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <poll.h>

#include <sys/wait.h>

#include "mleak.h"

/* sh's exit statuses for a command that cannot be run */
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

static pid_t pager; /* 0: none */

/* The command for the pager, or NULL. */
static const char *pager_command(void)
{
	const char *command = getenv("MLEAK_PAGER");

	if (!command)
		command = getenv("PAGER");
	/* where there is no less, the report is still to be seen */
	if (!command)
		return "command -v less >/dev/null && exec less; exec cat";
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/* Become the pager's parent, which shows the text itself if there is no such pager: it has read
 * nothing then, and all is still in the pipe. */
static void run_pager(const char *command, const int pipe[2])
{
	pid_t pid;
	int status = 0;

	dup2(pipe[0], STDIN_FILENO);
	close(pipe[0]);
	close(pipe[1]);
	signal(SIGPIPE, SIG_DFL);
	pid = fork();
	if (!pid) {
		/* leave if it fits, colours as they are, long lines cut, the screen as it was */
		setenv("LESS", "FRSX", 0);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(NOT_FOUND);
	}
	/* ^C is for the pager, which may go on */
	signal(SIGINT, SIG_IGN);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	if (pid > 0 && !(WIFEXITED(status) && (WEXITSTATUS(status) == NOT_EXECUTABLE ||
					       WEXITSTATUS(status) == NOT_FOUND)))
		_exit(0);
	log_warn("cannot run the pager '%s': the report is shown without it", command);
	execlp("cat", "cat", NULL);
	_exit(NOT_FOUND);
}

void pager_start(void)
{
	const char *command = isatty(STDOUT_FILENO) ? pager_command() : NULL;
	int ends[2];

	if (!command || pipe2(ends, O_CLOEXEC))
		return;
	pager = fork();
	if (!pager)
		run_pager(command, ends);
	if (pager > 0)
		dup2(ends[1], STDOUT_FILENO);
	else
		pager = 0;
	close(ends[0]);
	close(ends[1]);
}

/* All has been written: let the pager come to its end. */
static void wait_for_pager(void)
{
	int status;

	if (!pager)
		return;
	/* ^C is for the pager, too, which may go on */
	signal(SIGINT, SIG_IGN);
	close(STDOUT_FILENO);
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}

/* Has the reader at the other end of the pipe or socket gone? */
static bool is_closed(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

static int flush(void)
{
	int err;

	errno = 0;
	if (fflush(stdout) != EOF && !ferror(stdout))
		return EXIT_OK;
	/* if the failed write was an earlier one, errno is lost: another one, behind what is not
	 * whole anyway, may fail for the same reason */
	if (!errno && write(STDOUT_FILENO, "\n", 1) >= 0)
		errno = EIO;
	err = errno;
	if (err == EPIPE || is_closed())
		return EXIT_OK;
	log_error("cannot write the report: %s", strerror(err));
	return EXIT_FAILED;
}

int pager_finish(void)
{
	int status = flush();

	wait_for_pager();
	return status;
}
