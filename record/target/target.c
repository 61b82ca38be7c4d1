/* target.c - what /proc says of a process */
#include "record/target/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/kernel.h"
#include "record/base/living.h"
#include "record/base/proc.h"
#include "record/privilege/privileges.h"

/* Set t->task to the first thread that lives, but not to @not. */
static void find_task(struct target *t, pid_t not )
{
	const pid_t tid = living_other(t->pid, not );

	if (tid)
		t->task = tid;
}

/* Set t->task anew if that thread has ended; it stays as it is when all have. */
static void find_living(struct target *t)
{
	if (!living_is(t->task))
		find_task(t, 0);
}

void target_find_other(struct target *t)
{
	/* The main thread may still look alive, on its way out. */
	if (t->task == t->pid || !living_is(t->task))
		find_task(t, t->pid);
}

bool target_lacks_main(const struct target *t)
{
	return !living_is(t->pid);
}

static void describe(struct target *t)
{
	char path[64];
	ssize_t n = -1;
	size_t len;
	int exe;

	find_living(t);
	len = proc_read(t->comm, sizeof(t->comm), "/proc/%d/comm", (int)t->pid);
	if (len && t->comm[len - 1] == '\n')
		t->comm[len - 1] = '\0';
	exe = target_open_file(t, HELPER_EXE);
	if (exe >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", exe);
		n = readlink(path, t->exe, sizeof(t->exe) - 1);
		close(exe);
	}
	t->exe[n > 0 ? n : 0] = '\0';
	len = proc_read(t->command, sizeof(t->command), "/proc/%d/cmdline", (int)t->task);
	while (len && !t->command[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!t->command[i])
			t->command[i] = ' ';
}

void target_describe(struct target *t)
{
	struct target now = *t;

	describe(&now);
	if (!target_is_reaped(t)) /* else its number may be another's */
		*t = now;
}

/* Has the process a folder in /proc? */
static bool is_there(const struct target *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)t->pid);
	return !access(path, F_OK);
}

/* Are all user ids of the process this one's? */
static bool is_ours(const struct target *t)
{
	unsigned int ids[3] = {0};
	char status[8192];
	const char *line;

	proc_read(status, sizeof(status), "/proc/%d/status", (int)t->task);
	line = strstr(status, "\nUid:");
	return line && sscanf(line, "\nUid: %u %u %u", &ids[0], &ids[1], &ids[2]) == 3 &&
	       ids[0] == getuid() && ids[1] == getuid() && ids[2] == getuid();
}

static void explain_denied(const struct target *t)
{
	int pid = (int)t->pid;

	if (privileges_has(CAP_SYS_PTRACE))
		log_error("cannot watch process %d: the kernel refuses it though mleak has "
			  "CAP_SYS_PTRACE; the cause may be a security module, or a user "
			  "namespace, where that capability does not apply to other processes",
			  pid);
	else if (is_ours(t))
		log_error("cannot watch process %d: it is protected (a set-user-ID program, file "
			  "capabilities, or prctl(PR_SET_DUMPABLE, 0)), and mleak lacks "
			  "CAP_SYS_PTRACE; "
			  "run it as root, or give it that, and for eBPF CAP_BPF and CAP_PERFMON",
			  pid);
	else
		log_error("cannot watch process %d: it belongs to another user, and mleak lacks "
			  "CAP_SYS_PTRACE; run it as root, or give it that, and for eBPF CAP_BPF "
			  "and CAP_PERFMON",
			  pid);
}

/* What is wrong with /proc for all processes, in words that go on after "/proc "; NULL: nothing. */
static const char *proc_is_wrong(void)
{
	struct statfs fs;
	char self[32];
	ssize_t n;

	if (statfs("/proc", &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return "is not a proc file system; mount one (mount -t proc proc /proc), or run "
		       "mleak where there is one";
	n = readlink("/proc/self", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	if (strtol(self, NULL, 10) != getpid())
		return "belongs to another pid namespace; mount that of this one (mount -t proc "
		       "proc /proc)";
	return NULL;
}

/* Is the process there, and /proc hides it, which failed with @err? */
static bool is_hidden(const struct target *t, int err)
{
	return err == -ENOENT && (!kill(t->pid, 0) || errno == EPERM) && !is_there(t);
}

/* Or, as others are there, what else it may be. */
static void tell_gone(struct target *t, const char *what_else)
{
	t->gone = true;
	log_warn("process %d is left out: it has ended, or %s", (int)t->pid, what_else);
}

/* Say why /proc/PID cannot be read. */
static void explain(struct target *t, int err)
{
	const char *wrong = proc_is_wrong();

	if (t->hushed)
		return;
	if (wrong)
		log_error("cannot watch process %d: /proc %s", (int)t->pid, wrong);
	else if (err == -EACCES || err == -EPERM)
		explain_denied(t);
	else if (err != -ESRCH && err != -ENOENT)
		log_error("cannot read /proc/%d: %s", (int)t->pid, strerror(-err));
	else if (is_hidden(t, err))
		log_error("cannot watch process %d: it is not visible in /proc, which is mounted "
			  "with hidepid; run mleak as root, or in the group that the mount's gid= "
			  "names",
			  (int)t->pid);
	else if (t->dispensable)
		tell_gone(t, "is a kernel thread");
	else
		log_error("cannot watch process %d: it has ended, or is a kernel thread",
			  (int)t->pid);
}

/* The process has no descriptor. */
static void explain_none(struct target *t, int err)
{
	int pid = (int)t->pid;

	if (err == -ESRCH && t->dispensable)
		tell_gone(t, "never was");
	else if (err == -ESRCH)
		log_error("there is no process %d; 'ps -e' lists the processes", pid);
	else if (err == -EINVAL || err == -ENOENT)
		log_error("%d is a thread, not a process; name the process it belongs to", pid);
	else
		log_error("cannot watch process %d: %s", pid, strerror(-err));
}

/* Would the kernel let this user debug the process? It opens a link that CAP_PERFMON, with which
 * the mappings of all processes can be read, does not open. */
static int check_access(const struct target *t)
{
	int fd = target_open_file(t, HELPER_EXE);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

bool target_is_foreign(const struct target *t)
{
	Elf64_Ehdr header = {0};		  /* up to e_machine, 32-bit files have the same */
	int fd = target_open_file(t, HELPER_EXE); /* a place only: the helper has the rights */
	size_t n;

	if (fd < 0)
		return false;
	n = proc_read((char *)&header, sizeof(header), "/proc/self/fd/%d", fd);
	close(fd);
	return n >= EI_NIDENT + 4 && !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
	       (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64);
}

/* Would this kernel kill the process at a return probe?  Then one sentence was logged. */
static bool would_die(const struct target *t)
{
	char status[8192];
	struct utsname host;

	proc_read(status, sizeof(status), "/proc/%d/status", (int)t->task);
	if (uname(&host))
		return false;
	switch (kernel_risk_of(status, host.release)) {
	case KERNEL_RISK_SECCOMP:
		log_error("cannot watch process %d: it uses seccomp, and this kernel would kill it "
			  "at a return probe (CVE-2025-21834); use Linux 6.12.14, 6.13.3 or later",
			  (int)t->pid);
		return true;
	case KERNEL_RISK_SHADOW_STACK:
		log_error("cannot watch process %d: it has a shadow stack, and this kernel would "
			  "kill it at a return probe; use Linux 6.11 or later",
			  (int)t->pid);
		return true;
	case KERNEL_NO_RISK:
		break;
	}
	return false;
}

int target_open(struct target *t, pid_t pid)
{
	const struct target known = {
		.helper = t->helper, .unprobed = t->unprobed, .dispensable = t->dispensable};
	struct maps maps = {0};
	int err;

	*t = known;
	t->pid = t->task = pid;
	t->pidfd = proc_pidfd(pid);
	if (t->pidfd < 0) {
		err = -errno;
		explain_none(t, err);
		return err;
	}
	find_living(t);
	err = check_access(t);
	if (!err)
		err = target_read_maps(t, &maps);
	maps_release(&maps);
	if (err) {
		explain(t, err);
		return err;
	}
	describe(t);
	if (target_is_foreign(t)) {
		log_error("cannot record process %d: '%s' is not a 64-bit x86-64 program, and "
			  "mleak records no others",
			  (int)pid, t->exe);
		return -ENOEXEC;
	}
	if (!t->unprobed && would_die(t))
		return -EPERM;
	return 0;
}

bool target_has_ended(const struct target *t)
{
	struct pollfd fd = {.fd = t->pidfd, .events = POLLIN};

	return t->pidfd < 0 || poll(&fd, 1, 0) == 1;
}

bool target_is_reaped(const struct target *t)
{
	return proc_is_reaped(t->pidfd);
}

bool target_is_ending(const struct target *t)
{
	struct maps maps = {0};
	int err = target_read_maps(t, &maps);
	/* By kernel, the file of one without memory is empty, or cannot be opened. */
	bool empty = err == -ESRCH || (!err && !maps.nr);

	maps_release(&maps);
	return empty || target_has_ended(t);
}

int target_check_again(struct target *t)
{
	int err = check_access(t);

	if (!err)
		return 0;
	/* The helper refuses all of a process that has been waited for. */
	if (target_is_ending(t))
		return -ESRCH;
	if (err != -EACCES && err != -EPERM)
		return 0;
	explain(t, err);
	return -EACCES;
}

void target_release(struct target *t)
{
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}
