/* reader_proc.c - the stack reader: what /proc says about a process and its threads */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/reader/reader.h"

#define PF_KTHREAD     0x00200000u /* in the flags of /proc/PID/stat */
#define CAP_SYS_PTRACE 19

ssize_t dwunw_proc_read(int dir_fd, const char *name, char *text, size_t room)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, room - 1);
	len = len < 0 ? -errno : len;
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len;
}

static ssize_t read_of_thread(int proc_fd, pid_t tid, const char *name, char *text, size_t room)
{
	char path[64];

	snprintf(path, sizeof(path), "task/%d/%s", (int)tid, name);
	return dwunw_proc_read(proc_fd, path, text, room);
}

/* Field @nr (from 1) of the text of a stat file, NULL when there is none.  The name, field 2, may
 * hold blanks and parentheses: what follows it is counted from its last parenthesis. */
static const char *stat_field(const char *text, int nr)
{
	const char *at = strrchr(text, ')');

	for (int i = 2; at && i < nr; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at;
}

static uint64_t stat_number(const char *text, int nr)
{
	const char *field = stat_field(text, nr);

	return field ? strtoull(field, NULL, 10) : 0;
}

uint64_t dwunw_proc_start_time(int proc_fd)
{
	char text[1024];

	return dwunw_proc_read(proc_fd, "stat", text, sizeof(text)) > 0 ? stat_number(text, 22) : 0;
}

bool dwunw_proc_alive(const struct dwunw_stack_reader *r, pid_t tid)
{
	char text[1024];
	const char *state;

	if (read_of_thread(r->proc_fd, tid, "stat", text, sizeof(text)) <= 0)
		return false;
	state = stat_field(text, 3);
	return state && *state != 'Z' && *state != 'X';
}

/* The rest of the line of @status that begins with @name, or "". */
static const char *status_line(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) : "";
}

pid_t dwunw_proc_tracer(int proc_fd, pid_t tid)
{
	char text[4096];

	if (read_of_thread(proc_fd, tid, "status", text, sizeof(text)) <= 0)
		return 0;
	return (pid_t)strtol(status_line(text, "\nTracerPid:"), NULL, 10);
}

static bool may_trace_all(void)
{
	char text[4096];

	if (dwunw_proc_read(AT_FDCWD, "/proc/thread-self/status", text, sizeof(text)) <= 0)
		return false;
	return strtoull(status_line(text, "\nCapEff:"), NULL, 16) >> CAP_SYS_PTRACE & 1;
}

/* Are all ids of @line, real, effective, saved, equal to @id? */
static bool ids_are(const char *line, unsigned long id)
{
	unsigned long v[3];

	return sscanf(line, "%lu %lu %lu", &v[0], &v[1], &v[2]) == 3 && v[0] == id && v[1] == id &&
	       v[2] == id;
}

/* Files in /proc belong to root when the process is not dumpable. */
static bool is_dumpable(int proc_fd, const char *status)
{
	unsigned long euid = 0;
	struct stat st;

	sscanf(status_line(status, "\nUid:"), "%*u %lu", &euid);
	return fstatat(proc_fd, "status", &st, 0) || st.st_uid == euid;
}

static bool yama_restricts(void)
{
	char text[16];

	return dwunw_proc_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) >
		       0 &&
	       atol(text) > 0;
}

enum dwunw_denied dwunw_proc_denied(int proc_fd, pid_t tid)
{
	char stat[1024], status[4096];
	const char *state;

	if (dwunw_proc_read(proc_fd, "stat", stat, sizeof(stat)) <= 0 ||
	    dwunw_proc_read(proc_fd, "status", status, sizeof(status)) <= 0)
		return DWUNW_DENIED_UNKNOWN;
	state = stat_field(stat, 3);
	if (state && (*state == 'Z' || *state == 'X'))
		return DWUNW_DENIED_ZOMBIE;
	if (stat_number(stat, 9) & PF_KTHREAD)
		return DWUNW_DENIED_KERNEL_THREAD;
	if (dwunw_proc_tracer(proc_fd, tid))
		return DWUNW_DENIED_TRACED;
	if (may_trace_all())
		return DWUNW_DENIED_UNKNOWN;
	if (!ids_are(status_line(status, "\nUid:"), getuid()) ||
	    !ids_are(status_line(status, "\nGid:"), getgid()))
		return DWUNW_DENIED_OTHER_USER;
	if (!is_dumpable(proc_fd, status))
		return DWUNW_DENIED_NOT_DUMPABLE;
	return yama_restricts() ? DWUNW_DENIED_YAMA : DWUNW_DENIED_UNKNOWN;
}

const char *dwunw_denied_text(enum dwunw_denied why)
{
	static const char *const text[DWUNW_DENIED_NR] = {
		[DWUNW_DENIED_NOT] = "nothing was denied",
		[DWUNW_DENIED_OTHER_USER] = "it belongs to another user, and the right to trace "
					    "(CAP_SYS_PTRACE) is missing",
		[DWUNW_DENIED_YAMA] = "the system setting kernel.yama.ptrace_scope allows it only "
				      "to its parents or with CAP_SYS_PTRACE",
		[DWUNW_DENIED_TRACED] = "it is under a debugger or another tracer",
		[DWUNW_DENIED_NOT_DUMPABLE] = "it has made itself unreadable (PR_SET_DUMPABLE), or "
					      "changed its user or rights",
		[DWUNW_DENIED_KERNEL_THREAD] = "it is a kernel thread",
		[DWUNW_DENIED_ZOMBIE] = "its main thread has ended",
		[DWUNW_DENIED_UNKNOWN] = "the kernel or a security module forbids it",
	};

	return (unsigned int)why < DWUNW_DENIED_NR ? text[why] : "unknown reason";
}

int dwunw_proc_areas(struct dwunw_stack_reader *r)
{
	char line[512], perms[5];
	uint64_t start, end;
	bool starts_line = true;
	int err = 0, fd = openat(r->proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");

	if (!maps && fd >= 0)
		close(fd);
	r->areas.nr = 0;
	while (maps && !err && fgets(line, sizeof(line), maps)) {
		/* A path may be longer than the buffer: its rest is not a line. */
		if (starts_line &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, perms) == 3 &&
		    perms[0] == 'r' && perms[1] == 'w')
			err = dwunw_ranges_add(&r->areas, start, end, 0);
		starts_line = strchr(line, '\n');
	}
	if (maps)
		fclose(maps);
	r->start_stack = 0;
	if (dwunw_proc_read(r->proc_fd, "stat", line, sizeof(line)) > 0)
		r->start_stack = stat_number(line, 28);
	return err;
}

static int waiting_error(ssize_t err)
{
	return err == -EPERM || err == -EACCES ? DWUNW_ERR_ATTACH_DENIED : DWUNW_ERR_GONE;
}

int dwunw_proc_waiting(const struct dwunw_stack_reader *r, pid_t tid, struct dwunw_waiting *w)
{
	char text[512];
	ssize_t len;

	memset(w, 0, sizeof(*w));
	/* Before the registers: what runs between the two shows as a difference, later. */
	if (read_of_thread(r->proc_fd, tid, "schedstat", text, sizeof(text)) > 0)
		sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &w->runs[0], &w->runs[1],
		       &w->runs[2]);
	len = read_of_thread(r->proc_fd, tid, "syscall", text, sizeof(text));
	if (len <= 0)
		return waiting_error(len);
	if (sscanf(text, "-1 %" SCNx64 " %" SCNx64, &w->sp, &w->pc) == 2) {
		w->nr = -1;
		return 0;
	}
	if (sscanf(text,
		   "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64 " %" SCNx64,
		   &w->nr, &w->arg[0], &w->arg[1], &w->arg[2], &w->arg[3], &w->arg[4], &w->arg[5],
		   &w->sp, &w->pc) != 9)
		return -EAGAIN; /* "running" */
	return 0;
}
