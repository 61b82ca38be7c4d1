/* signals.c - blocked and waited for, never handled */
#include "record/signals.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>

#include "mleak.h"
#include "record/privilege/helper.h"

void signals_of_ours(sigset_t *set)
{
	struct sigaction hup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGUSR2);
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

/* What signals_unblock() gives back; of the process, as they are. */
static struct {
	sigset_t mask;
	void (*on_pipe)(int);
} before;

void signals_block(void)
{
	sigset_t set;

	signals_of_ours(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &before.mask);
	before.on_pipe = signal(SIGPIPE, SIG_IGN);
}

void signals_unblock(void)
{
	signal(SIGPIPE, before.on_pipe);
	sigprocmask(SIG_SETMASK, &before.mask, NULL);
}

void signals_pass_on(pid_t pid, int sig, struct helper *helper)
{
	if (kill(pid, sig) && errno == EPERM && helper)
		helper_signal(helper, pid, sig);
}

int signals_wait_for(pid_t pid, struct helper *helper, bool *told_to_end)
{
	const struct timespec patience = {.tv_sec = 1};
	bool told = false;
	sigset_t set;
	int status;

	signals_of_ours(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		int sig;

		if (got == pid)
			return status;
		if (got < 0 && errno != EINTR)
			return -errno;
		sig = told ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &patience);
		if (sig < 0 && errno == EAGAIN) {
			log_info("the recording has ended; mleak waits for the command, process %d",
				 (int)pid);
			told = true;
		}
		if (sig == SIGTERM || sig == SIGHUP) {
			signals_pass_on(pid, sig, helper);
			*told_to_end = true;
		}
	}
}
