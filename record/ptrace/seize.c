/* seize.c - see seize.h */
#include "record/ptrace/seize.h"

#include <asm/prctl.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/module/module_table.h"
#include "record/privilege/helper.h"

#define WAIT_NS	  50000 /* between two looks at a process that is to stop */
#define SETTLE_NS 250000000u

/* Not to be killed with us: the kernel sets it free. */
static void *options_for(unsigned int what)
{
	uintptr_t options = PTRACE_O_TRACESYSGOOD;

	if (what & SEIZE_CHILDREN)
		options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			   PTRACE_O_TRACEEXEC;
	if (what & SEIZE_EXIT)
		options |= PTRACE_O_TRACEEXIT;
	return (void *)options;
}

void seize_started(pid_t pid, unsigned int what)
{
	ptrace(PTRACE_SETOPTIONS, pid, NULL, options_for(what));
	ptrace(PTRACE_CONT, pid, NULL, NULL);
}

static int seize(pid_t tid, unsigned int what)
{
	return ptrace(PTRACE_SEIZE, tid, NULL, options_for(what)) ? -errno : 0;
}

/* Trace the threads of @pid that are not traced yet.  Returns how many, or -errno. */
static int seize_threads(pid_t pid, unsigned int what)
{
	int seized = 0, err = 0;
	pid_t tid;
	DIR *dir = proc_threads(pid);

	if (!dir)
		return -errno;
	while (!err && (tid = proc_next_thread(dir)) != 0) {
		int failed = seize(tid, what);

		if (!failed)
			seized++;
		else if (tid == pid)
			err = failed;
	}
	closedir(dir);
	return seized ? seized : err;
}

/* The stop that was requested, and no job control's? */
static bool is_ours(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

/* Wait until @until_ns for the stop of @tid that was requested, and let it go on. */
static void settle(pid_t tid, uint64_t until_ns, seize_stop_fn *stopped, void *ctx)
{
	int status;
	pid_t got;

	while ((got = waitpid(tid, &status, WNOHANG | __WALL | __WNOTHREAD)) >= 0) {
		if (!got) {
			if (clock_now_ns() > until_ns)
				return;
			nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
			continue;
		}
		if (WIFSTOPPED(status) && is_ours(status)) {
			ptrace(PTRACE_CONT, tid, NULL, NULL);
			return;
		}
		stopped(ctx, tid, status);
		if (!WIFSTOPPED(status) || status >> 16 == PTRACE_EVENT_STOP)
			return; /* it has ended, or its shell has stopped it */
	}
}

/* No thread of @pid is where it was before it was traced: in the middle of a fork. */
static void settle_threads(pid_t pid, seize_stop_fn *stopped, void *ctx)
{
	uint64_t until_ns = clock_now_ns() + SETTLE_NS;
	DIR *dir = proc_threads(pid);
	pid_t tid;

	if (!dir)
		return;
	while ((tid = proc_next_thread(dir)) != 0)
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	rewinddir(dir);
	while ((tid = proc_next_thread(dir)) != 0)
		settle(tid, until_ns, stopped, ctx);
	closedir(dir);
}

int seize_running(pid_t pid, unsigned int what, seize_stop_fn *stopped, void *ctx)
{
	int n, first;

	if (!(what & SEIZE_CHILDREN))
		return seize(pid, what);
	n = first = seize_threads(pid, what);

	/* A thread started by one that was not traced yet is found by looking again. */
	for (int pass = 0; pass < 3 && n > 0; pass++)
		n = seize_threads(pid, what);
	if (first < 0)
		return first;
	settle_threads(pid, stopped, ctx);
	return 0;
}

/* When glibc's loader has mapped all that the program needs, it sets up the first thread's storage,
 * and with it the register fs, by arch_prctl(2) (csu/libc-tls.c and rtld.c, init_tls); then come
 * relocations and the libraries' constructors. */

#define MAX_STOPS 20000 /* two for each system call: four or five of these a library */

struct to_start_entry {
	pid_t pid;
	unsigned int stops;
};

static struct to_start_entry *find_entry(const struct to_start *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->v[i].pid == pid)
			return &s->v[i];
	return NULL;
}

void to_start_add(struct to_start *s, pid_t pid)
{
	to_start_remove(s, pid);
	if (!grow_array(&s->v, s->nr, &s->room, sizeof(*s->v)))
		s->v[s->nr++] = (struct to_start_entry){.pid = pid};
}

void to_start_remove(struct to_start *s, pid_t pid)
{
	struct to_start_entry *e = find_entry(s, pid);

	if (e)
		*e = s->v[--s->nr];
}

int to_start_request(const struct to_start *s, pid_t pid)
{
	return find_entry(s, pid) ? PTRACE_SYSCALL : PTRACE_CONT;
}

bool to_start_is_there(struct to_start *s, pid_t pid)
{
	struct __ptrace_syscall_info info = {0};
	struct to_start_entry *e = find_entry(s, pid);
	bool known, there;

	if (!e)
		return false;
	known = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		info.arch == AUDIT_ARCH_X86_64;
	there = known && info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_arch_prctl &&
		info.entry.args[0] == ARCH_SET_FS;
	/* a 32-bit program is not recorded */
	if (there || !known || ++e->stops > MAX_STOPS)
		to_start_remove(s, pid);
	return there;
}

#define WAITS 200 /* times a process that is to stop is examined */

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
