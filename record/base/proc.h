/* proc.h - what the kernel says of a process: short files of /proc, and descriptors of processes */
#ifndef RECORD_PROC_H
#define RECORD_PROC_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Read the first @size - 1 bytes of the file that @format names into @text, NUL-terminated. Returns
 * their number, 0 where it cannot be read. */
__attribute__((format(printf, 3, 4))) static inline size_t proc_read(char *text, size_t size,
								     const char *format, ...)
{
	char path[96];
	ssize_t n = -1;
	va_list args;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* Has process @pid the thread @tid? */
static inline bool proc_has_thread(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return tid > 0 && !access(path, F_OK);
}

/* Wait until the thread @tid of this process, which ends, traces nobody any more: that comes after
 * the moment for which pthread_join(3) waits. */
static inline void proc_wait_for_end(pid_t tid)
{
	while (proc_has_thread(getpid(), tid))
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* The threads of process @pid, for proc_next_thread(), to be closed; or NULL and errno. */
static inline DIR *proc_threads(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

/* The next thread in @dir; 0 at its end. */
static inline pid_t proc_next_thread(DIR *dir)
{
	struct dirent *entry;
	pid_t tid = 0;

	while (tid <= 0 && (entry = readdir(dir)) != NULL)
		tid = (pid_t)strtol(entry->d_name, NULL, 10);
	return tid;
}

/* The field @number, from the third on, of what the kernel says of thread @tid of process @pid
 * (proc_pid_stat(5)); "": there is no such thread.  @text, of @size bytes, has it. */
static inline const char *proc_stat(char *text, size_t size, pid_t pid, pid_t tid, int number)
{
	char *at;

	proc_read(text, size, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	at = strrchr(text, ')'); /* the second one is a name, and may have all in it */
	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : "";
}

/* Is thread @tid of process @pid the kernel's own?  io_uring has such: they execute no code of the
 * process, and have no registers of it. */
static inline bool proc_is_worker(pid_t pid, pid_t tid)
{
	enum { IO_WORKER = 0x10, FLAGS = 9 }; /* PF_IO_WORKER, since Linux 5.12; which field */
	char text[512];

	return strtoul(proc_stat(text, sizeof(text), pid, tid, FLAGS), NULL, 10) & IO_WORKER;
}

/* Does thread @tid of process @pid wait in the kernel, and no signal or tracer gets it out? */
static inline bool proc_is_uninterruptible(pid_t pid, pid_t tid)
{
	char text[512];

	return *proc_stat(text, sizeof(text), pid, tid, 3) == 'D';
}

/* A descriptor of process @pid, to be closed; or -1 and errno. */
static inline int proc_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Has the process of @pidfd ended and been waited for, so that its number may be another's? */
static inline bool proc_is_reaped(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) && errno == ESRCH;
}

#endif
