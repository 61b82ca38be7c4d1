/* guard_signals.c - a check of all blocks before a signal ends the process
 *
 * Signals that would end the process have a handler of ours, which checks, and then has the kernel
 * do what it would have done: the status is the same, and so are the registers in a core.  Only
 * where the default is set is there a handler, and a query for the disposition returns the default.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/event/thread_ring.h"
#include "record/libpreload/guard/guard.h"

#ifndef PRELOAD_STATIC

/* Of the signal whose handler this thread runs; NULL: none. */
static __thread siginfo_t *ending __attribute__((tls_model("initial-exec")));

static bool on;

/* What the program has set, where our handler is: the default, and flags without a meaning. */
static struct sigaction given[NSIG];

/* Does the default end the process, and is that anything for a handler?  32 and 33 are the C
 * library's own. */
static bool is_fatal(int sig)
{
	switch (sig) {
	case SIGKILL:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGCHLD:
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
	case 32:
	case 33:
		return false;
	default:
		return sig > 0 && sig < NSIG;
	}
}

/* Have @info's signal delivered to this thread once it is not blocked: where its handler returns
 * to. */
static void raise_again(const siginfo_t *info)
{
	long pid = preload_syscall(SYS_getpid, 0, 0, 0, 0);
	long tid = preload_syscall(SYS_gettid, 0, 0, 0, 0);

	/* Only as many of some signals as the user may have can wait. */
	if (preload_syscall(SYS_rt_tgsigqueueinfo, pid, tid, info->si_signo, (long)info))
		preload_syscall(SYS_kill, pid, info->si_signo, 0, 0);
}

/* Our look itself met memory that is not there: the process ends by the signal it ends by. */
static void give_up(const siginfo_t *info)
{
	uint64_t bit = 1ull << (info->si_signo - 1);

	raise_again(info);
	preload_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&bit, 0, sizeof(bit));
}

/* The kernel has made the disposition the default again. */
static void on_fatal(int sig, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)context;
	(void)sig;
	if (ending)
		give_up(ending);
	ending = info;
	/* Its bounds would be requested with a call that allocates, maybe from within malloc. */
	if (preload_self.stack_lo == preload_self.stack_hi)
		preload_self.stack_hi = preload_self.stack_lo + 1;
	guard_check_all(OVERRUN_AT_EXIT);
	ending = NULL;
	raise_again(info);
	errno = saved_errno;
}

static bool is_ours(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == on_fatal;
}

static int real_sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	if (preload_real.sigaction)
		return preload_real.sigaction(sig, action, old);
	errno = ENOSYS;
	return -1;
}

/* Where @sig has the default, it has our handler from now on. */
static void take_over(int sig)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK}, old;

	if (!on || !is_fatal(sig) || preload_no_calls() || real_sigaction(sig, NULL, &old) ||
	    old.sa_handler != SIG_DFL)
		return;
	given[sig] = old;
	ours.sa_sigaction = on_fatal;
	sigemptyset(&ours.sa_mask);
	real_sigaction(sig, &ours, NULL);
}

static void leave(int sig)
{
	struct sigaction old;

	if (is_fatal(sig) && !real_sigaction(sig, NULL, &old) && is_ours(&old))
		real_sigaction(sig, &given[sig], NULL);
}

static void at_quick_exit_too(void)
{
	guard_check_all(OVERRUN_AT_EXIT);
}

void guard_signals(bool taken)
{
	static bool registered;
	int saved_errno = errno;

	if (!preload_state.guards)
		return;
	/* The first that is registered runs last. */
	if (!registered)
		registered = !at_quick_exit(at_quick_exit_too);
	on = taken;
	for (int sig = 1; sig < NSIG; sig++)
		taken ? take_over(sig) : leave(sig);
	errno = saved_errno;
}

EXPORT int sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	int err;

	if (!preload_ready() || !on)
		return real_sigaction(sig, action, old);
	err = real_sigaction(sig, action, old);
	if (err)
		return err;
	if (old && is_ours(old))
		*old = given[sig];
	if (action)
		take_over(sig);
	return 0;
}

EXPORT int __sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	return sigaction(sig, action, old);
}

/* What signal() and its like return, where they have set @sig. */
static sighandler_t answer(int sig, sighandler_t old)
{
	if (old != SIG_ERR)
		take_over(sig);
	return old == (sighandler_t)(uintptr_t)on_fatal ? SIG_DFL : old;
}

#define SETTER(name, real)                                           \
	EXPORT sighandler_t name(int sig, sighandler_t handler)      \
	{                                                            \
		if (!preload_ready() || !preload_real.real) {        \
			errno = EINVAL;                              \
			return SIG_ERR;                              \
		}                                                    \
		return answer(sig, preload_real.real(sig, handler)); \
	}

SETTER(signal, signal)
SETTER(bsd_signal, signal)
SETTER(ssignal, signal)
SETTER(sysv_signal, sysv_signal)
SETTER(__sysv_signal, sysv_signal)
SETTER(sigset, sigset)

#else

/* The linker is not told of these functions: see doc/decisions/0030-guard-bytes.md. */
void guard_signals(bool taken)
{
	(void)taken;
}

#endif
