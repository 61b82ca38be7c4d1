/* stop.c - see stop.h */
#include "record/ptrace/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "record/privilege/helper.h"

#define WAITS	200   /* times a process that is to stop is examined */
#define WAIT_NS 50000 /* between two */

/* Has it stopped or ended?  @sig is then what is to be delivered to it when it goes on. */
static bool has_stopped(struct stop *h, pid_t pid, int *sig)
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

static void let_go(struct stop *h, pid_t pid, int sig)
{
	if (h->seized)
		ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)sig);
	h->seized = false;
}

static int hold_by_helper(struct stop *h, pid_t pid, struct helper *helper)
{
	int err = helper_hold(helper, pid, &h->stopped);

	h->seized = !err;
	h->helper = helper;
	return err;
}

int stop_begin(struct stop *h, pid_t pid, struct helper *helper)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return errno == EPERM && helper ? hold_by_helper(h, pid, helper) : -errno;
	h->seized = true;
	h->helper = NULL;
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

void stop_end(struct stop *h, pid_t pid)
{
	if (!h->seized)
		return;
	if (h->helper) {
		h->seized = !helper_let_go(h->helper, pid);
		return;
	}
	if (!h->stopped)
		h->stopped = has_stopped(h, pid, &h->sig);
	if (h->stopped)
		let_go(h, pid, h->sig);
}
