/* top_record.c - see top_record.h */
#include "report/top/top_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mleak.h"

#define SAID_MAX  65536	    /* bytes */
#define PIPE_SIZE (1 << 20) /* so that the recorder need not wait while a table is made */

/* The recorder's command line, in one allocation; NULL: there is no memory. */
static char **make_words(const struct top_opts *opts, int *nr)
{
	size_t nr_command = 0, at = 0;
	char **words;

	while (opts->command && opts->command[nr_command])
		nr_command++;
	words = calloc(opts->nr_record + nr_command + 2, sizeof(*words));
	if (!words)
		return NULL;
	for (size_t i = 0; i < opts->nr_record; i++)
		words[at++] = (char *)opts->record[i];
	if (nr_command)
		words[at++] = (char *)"--";
	for (size_t i = 0; i < nr_command; i++)
		words[at++] = opts->command[i];
	*nr = (int)at;
	return words;
}

/* That of the trace, and that which tells of its beginning.  Returns 0, or -1 with errno. */
static int open_pipes(int fds[2], int told[2])
{
	int err;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	if (!pipe2(told, O_CLOEXEC | O_NONBLOCK))
		return 0;
	err = errno;
	close(fds[0]);
	close(fds[1]);
	errno = err;
	return -1;
}

/* Sealed: a command that says more than fits is told so by its write(2), and nothing is harmed. */
static int open_said(void)
{
	int fd = memfd_create("mleak-top", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, SAID_MAX) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The command has no terminal, which shows a screen: its output is dropped, unless it goes
 * elsewhere, and what is said on stderr waits in a file of bounded size. */
static void leave_terminal(int said)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	if (isatty(STDOUT_FILENO))
		dup2(null, STDOUT_FILENO);
	if (isatty(STDERR_FILENO))
		dup2(said >= 0 ? said : null, STDERR_FILENO);
	close(null);
}

int top_record_start(struct top_record *record, const struct top_opts *opts, const sigset_t *mask,
		     bool quiet)
{
	int fds[2], told[2], nr, err = 0;
	char **words = make_words(opts, &nr);

	*record = (struct top_record){
		.pipe = -1, .told = -1, .said = -1, .command = opts->command != NULL};
	if (!words)
		return -ENOMEM;
	if (open_pipes(fds, told)) {
		err = -errno;
		free(words);
		return err;
	}
	if (quiet)
		record->said = open_said();
	fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE); /* or as large as it is */
	fflush(NULL); /* the recorder is not to write again what waits here */
	record->pid = fork();
	if (!record->pid) {
		close(fds[0]);
		sigprocmask(SIG_SETMASK, mask, NULL);
		close(told[0]);
		if (quiet)
			leave_terminal(record->said);
		nr = record_into(nr, words, fds[1], told[1]);
		free(words);
		exit(nr);
	}
	if (record->pid < 0) {
		err = -errno;
		record->pid = 0;
		close(fds[0]);
		close(told[0]);
	} else {
		record->pipe = fds[0];
		record->told = told[0];
	}
	close(fds[1]);
	close(told[1]);
	free(words);
	return err;
}

bool top_record_begun(struct top_record *record)
{
	char byte;

	record->begun = record->begun || read(record->told, &byte, 1) == 1;
	return record->begun;
}

void top_record_signal(const struct top_record *record, int sig)
{
	if (record->pid)
		kill(record->pid, sig);
}

void top_record_stop(const struct top_record *record)
{
	/* The first is left to the command: see record/event_loop.h.  Two of one signal may come as
	 * one. */
	top_record_signal(record, SIGINT);
	if (record->command)
		top_record_signal(record, SIGQUIT);
}

bool top_record_ended(struct top_record *record)
{
	if (record->pid && waitpid(record->pid, &record->status, WNOHANG) != 0)
		record->pid = 0;
	return !record->pid;
}

void top_record_release(struct top_record *record)
{
	if (record->pipe >= 0)
		close(record->pipe);
	if (record->told >= 0)
		close(record->told);
	if (record->said >= 0)
		close(record->said);
	record->pipe = record->told = record->said = -1;
}
