/* reader.c - registers and stacks of the threads of a running process */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unwind/reader/reader.h"

#define DEFAULT_MAX_STACK ((size_t)8 << 20)
#define WARM_BYTES	  ((size_t)64 << 10)
#define READ_TRIES	  3

/* Has the process ended? */
static bool is_gone(const struct dwunw_stack_reader *r)
{
	struct pollfd ended = {.fd = r->pid_fd, .events = POLLIN};
	char text[16];

	if (r->pid_fd >= 0)
		return poll(&ended, 1, 0) > 0;
	return dwunw_proc_read(r->proc_fd, "comm", text, sizeof(text)) < 0;
}

/* What the errno of a failed open of one of the process's files comes to. */
static int open_error(int err)
{
	if (err == EACCES || err == EPERM)
		return DWUNW_ERR_ATTACH_DENIED;
	return err == ENOENT || err == ESRCH ? DWUNW_ERR_GONE : -err;
}

/* Open a descriptor of the process, so that from here on a later process with its number is
 * distinguished from it. */
static int open_identity(struct dwunw_stack_reader *r, uint64_t start_time)
{
	char path[32];

	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (r->pid_fd < 0 && errno == ESRCH)
		return DWUNW_ERR_GONE;
	if (r->pid_fd < 0 && (errno == EINVAL || errno == ENOENT))
		return -EINVAL; /* the number of a thread */
	if (r->pid_fd < 0 && errno != ENOSYS && errno != EPERM)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d", (int)r->pid);
	r->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->proc_fd < 0)
		return open_error(errno);
	if (start_time && dwunw_proc_start_time(r->proc_fd) != start_time)
		return DWUNW_ERR_GONE;
	/* Not ended yet: then the directory just opened is that of the process of the pidfd. */
	return is_gone(r) ? DWUNW_ERR_GONE : 0;
}

/* Take the lock that keeps other readers away: on a file that can only be opened by users who may
 * read the process, so that no others can hold it against them. */
static int take_lock(struct dwunw_stack_reader *r)
{
	r->lock_fd = openat(r->proc_fd, "auxv", O_RDONLY | O_CLOEXEC);
	if (r->lock_fd < 0)
		return open_error(errno);
	if (flock(r->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

/* May we do what reading takes? Memory is requested at an address that no process has. */
static int check_allowed(const struct dwunw_stack_reader *r)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {NULL, 1};

	if (process_vm_readv(r->pid, &to, 1, &from, 1, 0) < 0 && errno != EFAULT)
		return open_error(errno);
	if (!(r->flags & DWUNW_READER_NO_STOP) && dwunw_proc_tracer(r->proc_fd, r->pid))
		return DWUNW_ERR_ATTACH_DENIED;
	return 0;
}

/* Why @err came up, if it was for lack of a right, or for lack of a memory to read. */
static enum dwunw_denied reason(const struct dwunw_stack_reader *r, int err)
{
	enum dwunw_denied why;

	if (r->proc_fd < 0 || (err != DWUNW_ERR_GONE && err != DWUNW_ERR_ATTACH_DENIED))
		return DWUNW_DENIED_NOT;
	why = dwunw_proc_denied(r->proc_fd, r->pid);
	if (err == DWUNW_ERR_ATTACH_DENIED || why == DWUNW_DENIED_ZOMBIE ||
	    why == DWUNW_DENIED_KERNEL_THREAD)
		return why;
	return DWUNW_DENIED_NOT;
}

static int attach(struct dwunw_stack_reader *r, const struct dwunw_stack_reader_opts *opts,
		  enum dwunw_denied *denied)
{
	int err = open_identity(r, opts->start_time);

	if (!err)
		err = take_lock(r);
	if (!err)
		err = check_allowed(r);
	*denied = reason(r, err);
	if (err)
		return *denied ? DWUNW_ERR_ATTACH_DENIED : err;
	r->bytes = mmap(NULL, r->max_stack, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->bytes == MAP_FAILED)
		return -ENOMEM;
	/* Most stacks fit in here; the page faults are taken now, not while a thread is stopped.
	 */
	memset(r->bytes, 0, r->max_stack < WARM_BYTES ? r->max_stack : WARM_BYTES);
	return 0;
}

int dwunw_stack_reader_attach(pid_t pid, const struct dwunw_stack_reader_opts *opts,
			      struct dwunw_stack_reader **out)
{
	static const struct dwunw_stack_reader_opts none;
	enum dwunw_denied denied = DWUNW_DENIED_NOT;
	struct dwunw_stack_reader *r;
	int err;

	*out = NULL;
	opts = opts ? opts : &none;
	if (opts->denied)
		*opts->denied = DWUNW_DENIED_NOT;
	if (pid <= 0 || pid == getpid())
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct dwunw_stack_reader){
		.pid = pid,
		.pid_fd = -1,
		.proc_fd = -1,
		.lock_fd = -1,
		.flags = opts->flags,
		.max_stack = opts->max_stack ? opts->max_stack : DEFAULT_MAX_STACK,
		.bytes = MAP_FAILED,
	};
	err = attach(r, opts, &denied);
	if (!err) {
		*out = r;
		return 0;
	}
	if (opts->denied)
		*opts->denied = denied;
	dwunw_stack_reader_detach(r);
	return err;
}

void dwunw_stack_reader_detach(struct dwunw_stack_reader *reader)
{
	if (!reader)
		return;
	if (reader->bytes != MAP_FAILED)
		munmap(reader->bytes, reader->max_stack);
	for (int i = 0; i < 3; i++) {
		int fd = (int[]){reader->lock_fd, reader->proc_fd, reader->pid_fd}[i];

		if (fd >= 0)
			close(fd);
	}
	dwunw_ranges_release(&reader->areas);
	free(reader);
}

int dwunw_stack_reader_threads(struct dwunw_stack_reader *reader, pid_t *tids, size_t max)
{
	int nr = 0, fd = openat(reader->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		int err = open_error(errno);

		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if ((size_t)nr < max)
			tids[nr] = tid;
		nr++;
	}
	closedir(dir);
	return nr ? nr : DWUNW_ERR_GONE;
}

static int read_thread(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy)
{
	int err = -EAGAIN, waits;

	if (r->flags & DWUNW_READER_NO_STOP)
		return dwunw_copy_waiting(r, copy);
	/* A thread may begin and end to wait while we look. */
	for (int i = 0; i < READ_TRIES && err == -EAGAIN; i++) {
		copy->flags = 0;
		waits = dwunw_is_spared(r, copy->tid) ? -EINTR : dwunw_copy_stopped(r, copy);
		if (waits != -EINTR && waits != -ETIMEDOUT)
			return waits;
		err = dwunw_copy_waiting(r, copy);
		if (err == -EAGAIN && waits == -ETIMEDOUT)
			err = -ETIMEDOUT;
	}
	return err;
}

/* As dwunw_stack_reader_read(), with the mappings that are known. */
static int read_known(struct dwunw_stack_reader *r, pid_t tid, struct dwunw_stack_copy *copy)
{
	int err;

	memset(copy, 0, sizeof(*copy));
	copy->tid = tid;
	/* Threads of other processes are not found below ours. */
	if (is_gone(r) || tid <= 0 || !dwunw_proc_alive(r, tid))
		return DWUNW_ERR_GONE;
	err = read_thread(r, copy);
	if (!err)
		return 0;
	copy->flags = 0;
	memset(&copy->regs, 0, sizeof(copy->regs));
	memset(&copy->stack, 0, sizeof(copy->stack));
	if (err == DWUNW_ERR_ATTACH_DENIED && !dwunw_proc_alive(r, tid))
		err = DWUNW_ERR_GONE; /* ptrace also denies what is just ending */
	if (err == DWUNW_ERR_ATTACH_DENIED)
		copy->denied = dwunw_proc_denied(r->proc_fd, tid);
	return err;
}

int dwunw_stack_reader_read(struct dwunw_stack_reader *reader, pid_t tid,
			    struct dwunw_stack_copy *copy)
{
	int err = dwunw_proc_areas(reader);

	if (err) {
		memset(copy, 0, sizeof(*copy));
		copy->tid = tid;
		return err;
	}
	return read_known(reader, tid, copy);
}

/* All thread ids in a new array, which the caller frees.  Returns their number or an error. */
static int all_threads(struct dwunw_stack_reader *r, pid_t **tids)
{
	size_t room = 64;

	for (;;) {
		int nr;

		*tids = calloc(room, sizeof(**tids));
		if (!*tids)
			return -ENOMEM;
		nr = dwunw_stack_reader_threads(r, *tids, room);
		if (nr >= 0 && (size_t)nr <= room)
			return nr;
		free(*tids);
		*tids = NULL;
		if (nr < 0)
			return nr;
		room = (size_t)nr * 2;
	}
}

int dwunw_stack_reader_read_all(struct dwunw_stack_reader *reader,
				int (*visit)(void *arg, int err,
					     const struct dwunw_stack_copy *copy),
				void *arg)
{
	struct dwunw_stack_copy copy;
	pid_t *tids = NULL;
	int nr = all_threads(reader, &tids), err = 0;

	if (nr >= 0)
		err = dwunw_proc_areas(reader);
	for (int i = 0; i < nr && !err; i++) {
		int got = read_known(reader, tids[i], &copy);

		if (got != DWUNW_ERR_GONE)
			err = visit(arg, got, &copy);
	}
	free(tids);
	if (nr < 0)
		return nr;
	return err ? err : is_gone(reader) ? DWUNW_ERR_GONE : 0;
}
