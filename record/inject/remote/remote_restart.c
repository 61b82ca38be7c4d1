/* remote_restart.c - see remote_restart.h */
#include "record/inject/remote/remote_restart.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "record/base/clock.h"
#include "record/base/proc.h"

#define TEXT_SIZE 65536
#define NS_PER_MS 1000000u

/* The number in the line @name of the file @file of thread @tid; 0: there is none. */
static unsigned long long read_value(pid_t pid, pid_t tid, const char *file, const char *name,
				     int base)
{
	char *text = malloc(TEXT_SIZE), *at = NULL;
	unsigned long long value = 0;

	if (text && proc_read(text, TEXT_SIZE, "/proc/%d/task/%d/%s", (int)pid, (int)tid, file))
		at = strstr(text, name);
	if (at)
		value = strtoull(at + strlen(name), NULL, base);
	free(text);
	return value;
}

/* When @tid was last put on its processor or taken from it, as the scheduler's clock of that
 * processor has it.  0: not known. */
static uint64_t switched_ns(pid_t pid, pid_t tid)
{
	char text[1024], *at;
	unsigned long long ms, ns;

	proc_read(text, sizeof(text), "/proc/%d/task/%d/sched", (int)pid, (int)tid);
	at = strstr(text, "se.exec_start");
	at = at ? strchr(at, ':') : NULL;
	if (!at || sscanf(at + 1, " %llu.%6llu", &ms, &ns) != 2)
		return 0;
	return (uint64_t)ms * NS_PER_MS + ns;
}

/* The processor on which @tid ran last, or -1. */
static int processor_of(pid_t pid, pid_t tid)
{
	char text[1024], *at;

	proc_read(text, sizeof(text), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	at = strrchr(text, ')');
	/* the 39th value of the line; the name was the second */
	for (int i = 2; at && i < 39; i++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at + 1) : -1;
}

/* Since when does @tid sleep?  Its processor's clock is read by running there for a moment.  0: not
 * known. */
static uint64_t asleep_since_ns(pid_t pid, pid_t tid)
{
	const uint64_t slept = switched_ns(pid, tid);
	const int cpu = processor_of(pid, tid);
	const pid_t self = (pid_t)syscall(SYS_gettid);
	uint64_t now, now_ns = 0;
	cpu_set_t before, one;

	if (!slept || cpu < 0 || cpu >= CPU_SETSIZE ||
	    sched_getaffinity(0, sizeof(before), &before))
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 0;
	/* this switches, by which our own time is noted */
	nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
	now_ns = clock_now_ns();
	now = switched_ns(getpid(), self);
	sched_setaffinity(0, sizeof(before), &before);
	if (now < slept || now - slept > now_ns || processor_of(pid, tid) != cpu ||
	    switched_ns(pid, tid) != slept)
		return 0;
	return now_ns - (now - slept);
}

static bool waits_for_events(long nr)
{
	return nr == SYS_epoll_wait || nr == SYS_epoll_pwait;
}

void remote_call_look(struct remote_call_seen *seen, pid_t pid, pid_t tid)
{
	char text[256], *at = text;

	*seen = (struct remote_call_seen){0};
	proc_read(text, sizeof(text), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	if (text[0] < '0' || text[0] > '9')
		return; /* it runs, or is in none */
	seen->known = true;
	seen->nr = strtol(at, &at, 10);
	for (int i = 0; i < 6; i++)
		seen->args[i] = strtoull(at, &at, 16);
}

static uint64_t count_sleeps(pid_t pid, pid_t tid)
{
	return read_value(pid, tid, "status", "\nvoluntary_ctxt_switches:", 10);
}

void remote_call_look_last(struct remote_call_seen *seen, pid_t pid, pid_t tid)
{
	remote_call_look(seen, pid, tid);
	seen->seen_ns = clock_now_ns();
	if (!seen->known || !waits_for_events(seen->nr) || (int)seen->args[3] <= 0)
		return;
	seen->sleeps = count_sleeps(pid, tid);
	seen->since_ns = asleep_since_ns(pid, tid);
}

/* When began the call of @nr and @args that @tid, which is stopped, was in?  It is the one that was
 * @seen if the thread has waited for nothing since but at this stop; else it began later.  0: not
 * known. */
static uint64_t begin_of(const struct remote_call_seen *seen, pid_t pid, pid_t tid, long nr,
			 const uint64_t args[6])
{
	const bool same = seen->known && seen->nr == nr &&
			  !memcmp(seen->args, args, sizeof(seen->args)) &&
			  count_sleeps(pid, tid) == seen->sleeps + 1;

	return same ? seen->since_ns : seen->seen_ns;
}

bool remote_call_is_same_again(long nr, const uint64_t args[6])
{
	switch (nr) {
	case SYS_read:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_wait4:
		return true;
	case SYS_futex: /* a time is an absolute one but in FUTEX_WAIT */
		return (args[1] & FUTEX_CMD_MASK) != FUTEX_WAIT || !args[3];
	case SYS_poll:
		return (int)args[2] < 0;
	case SYS_clock_nanosleep:
		return args[1] & TIMER_ABSTIME;
	default:
		return false;
	}
}

static void args_of(const struct user_regs_struct *regs, uint64_t args[6])
{
	const uint64_t all[] = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9};

	memcpy(args, all, sizeof(all));
}

/* Can the call @nr, which fails with EINTR whenever its thread is stopped, be made again?  *@timed:
 * if its end is known. */
static bool is_lost(long nr, const uint64_t args[6], bool *timed)
{
	*timed = waits_for_events(nr) && (int)args[3] >= 0;
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_semop:
		return true;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return !args[3];
	case SYS_rt_sigtimedwait:
		return !args[2];
	case SYS_io_uring_enter:
		return !(args[3] & IORING_ENTER_EXT_ARG);
	default:
		return false;
	}
}

/* Does it have signals blocked only while it waits? */
static bool has_mask(long nr)
{
	return nr == SYS_rt_sigsuspend || nr == SYS_ppoll || nr == SYS_pselect6 ||
	       nr == SYS_epoll_pwait || nr == SYS_epoll_pwait2 || nr == SYS_io_pgetevents ||
	       nr == SYS_io_uring_enter;
}

void remote_restart_init(struct remote_restart *c, pid_t pid, pid_t tid,
			 const struct user_regs_struct *regs, uint64_t mask,
			 const struct remote_call_seen *seen)
{
	const long nr = (long)regs->orig_rax, result = (long)regs->rax;
	uint64_t args[6];
	bool timed;

	*c = (struct remote_restart){0};
	args_of(regs, args);
	if (nr < 0)
		return;
	c->interrupted = result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
			 result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK;
	if (result == -EINTR && is_lost(nr, args, &timed)) {
		const uint64_t begin_ns = timed ? begin_of(seen, pid, tid, nr, args) : 0;

		if (begin_ns)
			c->until_ns = begin_ns + (uint64_t)(int)args[3] * NS_PER_MS;
		c->lost = c->interrupted = !timed || c->until_ns;
	}
	if (c->interrupted && has_mask(nr))
		c->blocked = read_value(pid, tid, "status", "\nSigBlk:", 16) & ~mask;
}

struct user_regs_struct remote_restart_again(const struct remote_restart *c,
					     const struct user_regs_struct *regs)
{
	struct user_regs_struct again = *regs;
	const uint64_t now_ns = clock_now_ns();
	uint64_t args[6];

	if (!c->interrupted)
		return again;
	args_of(regs, args);
	again.rax = regs->orig_rax;
	if ((long)regs->rax == -ERESTART_RESTARTBLOCK &&
	    !remote_call_is_same_again((long)regs->orig_rax, args))
		again.rax = SYS_restart_syscall;
	again.orig_rax = (unsigned long long)-1;
	again.rip -= 2; /* the instruction syscall */
	if (c->until_ns)
		again.r10 = c->until_ns > now_ns
				    ? (c->until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS
				    : 0;
	return again;
}

bool remote_restart_is_ended_by(const struct remote_restart *c, pid_t pid, pid_t tid, int sig)
{
	const uint64_t caught = read_value(pid, tid, "status", "\nSigCgt:", 16);

	return caught & ~c->blocked & UINT64_C(1) << (sig - 1);
}
