/* hold.c - see hold.h */
#include "record/hold.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#define WAITS	200   /* times a process that is to stop is looked at */
#define WAIT_NS 50000 /* between two */

/* Has it stopped or ended?  @sig is then what is to be delivered to it when it goes on. */
static bool has_stopped(struct hold *h, pid_t pid, int *sig)
{
	int status;
	pid_t got = waitpid(pid, &status, WNOHANG | __WALL);

	if (!got || (got < 0 && errno == EINTR))
		return false;
	*sig = 0;
	if (got != pid || !WIFSTOPPED(status))
		h->seized = false; /* it has ended; its parent is told once we have waited */
	else if (status >> 16 == 0)
		*sig = WSTOPSIG(status); /* a signal came first */
	return true;
}

static void let_go(struct hold *h, pid_t pid, int sig)
{
	if (h->seized)
		ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)sig);
	h->seized = false;
}

int hold_begin(struct hold *h, pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return -errno;
	h->seized = true;
	h->sig = 0;
	h->stopped = false;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	for (int i = 0; i < WAITS && !h->stopped; i++) {
		h->stopped = has_stopped(h, pid, &h->sig);
		if (!h->stopped)
			nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	}
	return 0;
}

void hold_end(struct hold *h, pid_t pid)
{
	if (!h->seized)
		return;
	if (!h->stopped)
		h->stopped = has_stopped(h, pid, &h->sig);
	if (h->stopped)
		let_go(h, pid, h->sig);
}
