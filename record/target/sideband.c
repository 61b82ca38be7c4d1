/* sideband.c - perf_event_open(2): a dummy event's records, read from a ring for each CPU */
#include "record/target/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/proc.h"

#define DATA_PAGES 64	 /* the loader's mappings while modules are being read */
#define MAX_RECORD 65536 /* a record's size is a u16 */

struct cpu_ring {
	int fd; /* of the event whose buffer it is; the CPU's other events write there too */
	struct perf_event_mmap_page *page;
	uint64_t tail, head; /* records to be read now */
	uint64_t next_ns;    /* time of the first of them */
};

/* An event of a process that was added again. */
struct later_event {
	pid_t pid;
	int fd;
};

struct sideband {
	size_t page_size;
	int nr_cpus;
	struct cpu_ring *rings; /* one a CPU; fd -1 where the CPU is offline */
	int *fds;		/* all events, one a thread and CPU */
	size_t nr_fds, room_fds;
	pid_t *tids; /* threads listened to */
	size_t nr_tids, room_tids;
	struct later_event *later;
	size_t nr_later, room_later;
	uint8_t record[MAX_RECORD];
};

int sideband_open_event(pid_t tid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int keep_fd(struct sideband *s, int fd)
{
	if (grow_array(&s->fds, s->nr_fds, &s->room_fds, sizeof(*s->fds))) {
		close(fd);
		return -ENOMEM;
	}
	s->fds[s->nr_fds++] = fd;
	return 0;
}

/* Give the CPU's first event a buffer, or let a later one write into that. */
static int connect(struct sideband *s, struct cpu_ring *ring, int fd)
{
	void *at;

	if (ring->page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ? -errno : 0;
	at = mmap(NULL, (1 + DATA_PAGES) * s->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	ring->fd = fd;
	ring->page = at;
	return 0;
}

static int add_thread(struct sideband *s, pid_t tid)
{
	for (int cpu = 0; cpu < s->nr_cpus; cpu++) {
		int fd = sideband_open_event(tid, cpu), err;

		if (fd == -ENODEV)
			continue; /* the CPU is offline */
		if (fd == -ESRCH)
			break; /* the thread has ended meanwhile */
		if (fd < 0)
			return fd;
		err = keep_fd(s, fd);
		if (!err)
			err = connect(s, &s->rings[cpu], fd);
		if (err)
			return err;
	}
	if (grow_array(&s->tids, s->nr_tids, &s->room_tids, sizeof(*s->tids)))
		return -ENOMEM;
	s->tids[s->nr_tids++] = tid;
	return 0;
}

static bool is_known(const struct sideband *s, pid_t tid)
{
	for (size_t i = 0; i < s->nr_tids; i++)
		if (s->tids[i] == tid)
			return true;
	return false;
}

/* Add the threads of @pid that are not known yet.  Returns how many, or -errno. */
static int add_new_threads(struct sideband *s, pid_t pid)
{
	DIR *dir = proc_threads(pid);
	int added = 0, err = 0;
	pid_t tid;

	if (!dir)
		return -errno;
	while (!err && (tid = proc_next_thread(dir)) != 0) {
		if (is_known(s, tid))
			continue;
		err = add_thread(s, tid);
		added++;
	}
	closedir(dir);
	return err ? err : added;
}

int sideband_open(struct sideband **out)
{
	struct sideband *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->page_size = (size_t)sysconf(_SC_PAGESIZE);
	s->nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	s->rings = calloc((size_t)s->nr_cpus, sizeof(*s->rings));
	if (!s->rings) {
		sideband_free(s);
		return -ENOMEM;
	}
	for (int cpu = 0; cpu < s->nr_cpus; cpu++)
		s->rings[cpu].fd = -1;
	*out = s;
	return 0;
}

int sideband_add(struct sideband *s, pid_t pid)
{
	int n = 1;

	/* A thread started by one not yet listened to is found by looking again; those started by
	 * one that is listened to are found too, so looking need not come to an end by itself. */
	for (int pass = 0; pass < 3 && n > 0; pass++)
		n = add_new_threads(s, pid);
	return n < 0 ? n : 0;
}

static int add_later(struct sideband *s, const struct target *t, pid_t tid, int cpu)
{
	const struct helper_task of = {.pid = t->pid, .task = tid};
	int fd = sideband_open_event(tid, cpu), err;

	if (t->helper && (fd == -EACCES || fd == -EPERM))
		fd = helper_listen(t->helper, &of, cpu);
	if (fd < 0)
		return fd == -ENODEV || fd == -ESRCH ? 0 : fd;
	/* A buffer stays as long as the descriptor of its first event. */
	if (!s->rings[cpu].page ||
	    grow_array(&s->later, s->nr_later, &s->room_later, sizeof(*s->later)))
		err = -ENOMEM;
	else
		err = connect(s, &s->rings[cpu], fd);
	if (err)
		close(fd);
	else
		s->later[s->nr_later++] = (struct later_event){t->pid, fd};
	return err;
}

int sideband_add_again(struct sideband *s, const struct target *t)
{
	DIR *dir = proc_threads(t->pid);
	int err = dir ? 0 : -errno;
	pid_t tid;

	while (!err && (tid = proc_next_thread(dir)) != 0)
		for (int cpu = 0; !err && cpu < s->nr_cpus; cpu++)
			err = add_later(s, t, tid, cpu);
	if (dir)
		closedir(dir);
	return err;
}

void sideband_keep(struct sideband *s, bool (*is_heard)(void *ctx, pid_t pid), void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_later; i++)
		if (is_heard(ctx, s->later[i].pid))
			s->later[kept++] = s->later[i];
		else
			close(s->later[i].fd);
	s->nr_later = kept;
}

int sideband_fd(const struct sideband *s, int i)
{
	for (int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (s->rings[cpu].fd >= 0 && i-- == 0)
			return s->rings[cpu].fd;
	return -1;
}

/* Every record ends with the time, after pid and tid: sample_type of open_event(). */
static uint64_t record_time(const struct perf_event_header *h)
{
	uint64_t time_ns;

	memcpy(&time_ns, (const uint8_t *)h + h->size - sizeof(time_ns), sizeof(time_ns));
	return time_ns;
}

/* PERF_RECORD_MMAP2, include/uapi/linux/perf_event.h; the header is before it. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

/* PERF_RECORD_FORK and PERF_RECORD_EXIT */
struct fork_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

static void on_mmap2(const struct mmap2_record *r, const struct sideband_sink *sink)
{
	struct mlk_mapping m = {
		.start = r->addr,
		.end = r->addr + r->len,
		.offset = r->pgoff,
		.inode = r->ino,
		.dev_major = r->maj,
		.dev_minor = r->min,
		.perms = (r->prot & PROT_READ ? MLK_PERM_R : 0) |
			 (r->prot & PROT_WRITE ? MLK_PERM_W : 0) |
			 (r->prot & PROT_EXEC ? MLK_PERM_X : 0) |
			 (r->flags & MAP_SHARED ? MLK_PERM_SHARED : 0),
		/* perf calls anonymous memory "//anon"; /proc/PID/maps says nothing */
		.path = strcmp(r->filename, "//anon") ? r->filename : "",
	};

	if (m.end > m.start)
		sink->mapped(sink->ctx, (pid_t)r->pid, record_time(&r->header), &m);
}

static void on_comm(const struct comm_record *r, const struct sideband_sink *sink)
{
	if (r->header.misc & PERF_RECORD_MISC_COMM_EXEC)
		sink->execed(sink->ctx, (pid_t)r->pid, record_time(&r->header));
	sink->named(sink->ctx, (pid_t)r->pid, r->tid, r->comm);
}

static void on_fork(const struct fork_record *r, const struct sideband_sink *sink)
{
	const struct sideband_fork fork = {
		.pid = (pid_t)r->pid,
		.tid = (pid_t)r->tid,
		.parent_pid = (pid_t)r->ppid,
		.parent_tid = (pid_t)r->ptid,
		.time_ns = r->time_ns,
	};

	sink->forked(sink->ctx, &fork);
}

static void on_exit_of(const struct fork_record *r, const struct sideband_sink *sink)
{
	if (r->pid == r->tid)
		sink->left(sink->ctx, (pid_t)r->pid);
}

static void dispatch(struct sideband *s, const struct sideband_sink *sink)
{
	const struct perf_event_header *h = (const struct perf_event_header *)s->record;
	uint64_t lost;

	switch (h->type) {
	case PERF_RECORD_MMAP2:
		on_mmap2((const struct mmap2_record *)s->record, sink);
		break;
	case PERF_RECORD_COMM:
		on_comm((const struct comm_record *)s->record, sink);
		break;
	case PERF_RECORD_FORK:
		on_fork((const struct fork_record *)s->record, sink);
		break;
	case PERF_RECORD_EXIT:
		on_exit_of((const struct fork_record *)s->record, sink);
		break;
	case PERF_RECORD_LOST: /* header, u64 id, u64 lost */
		memcpy(&lost, s->record + sizeof(*h) + 8, sizeof(lost));
		sink->lost(sink->ctx, lost);
		break;
	}
}

/* Copy @len bytes at position @at of the ring, which may wrap. */
static void copy_out(const struct sideband *s, const struct cpu_ring *ring, uint64_t at, void *to,
		     size_t len)
{
	const uint8_t *data = (const uint8_t *)ring->page + s->page_size;
	size_t size = DATA_PAGES * s->page_size, from = (size_t)(at & (size - 1));
	size_t first = len < size - from ? len : size - from;

	memcpy(to, data + from, first);
	memcpy((uint8_t *)to + first, data, len - first);
}

/* Look at the ring's next record; false: there is none. */
static bool peek(const struct sideband *s, struct cpu_ring *ring)
{
	struct perf_event_header h;

	if (ring->tail >= ring->head)
		return false;
	copy_out(s, ring, ring->tail, &h, sizeof(h));
	if (h.size < sizeof(h) + sizeof(ring->next_ns) || h.size > ring->head - ring->tail) {
		ring->tail = ring->head; /* not by the kernel's hand */
		return false;
	}
	copy_out(s, ring, ring->tail + h.size - sizeof(ring->next_ns), &ring->next_ns,
		 sizeof(ring->next_ns));
	return true;
}

/* The ring whose next record is the oldest of all; NULL: none has any. */
static struct cpu_ring *oldest(const struct sideband *s)
{
	struct cpu_ring *found = NULL;

	for (int cpu = 0; cpu < s->nr_cpus; cpu++) {
		struct cpu_ring *ring = &s->rings[cpu];

		if (ring->page && peek(s, ring) && (!found || ring->next_ns < found->next_ns))
			found = ring;
	}
	return found;
}

/* In the order of time across the CPUs: of two mappings at one place, the later must win.  What was
 * written since the begin stays: of a fork on one CPU, and what the child did on another, the
 * second might be seen alone. */
void sideband_read(struct sideband *s, const struct sideband_sink *sink)
{
	const uint64_t until_ns = clock_now_ns();
	struct cpu_ring *ring;
	struct perf_event_header h;

	for (int cpu = 0; cpu < s->nr_cpus; cpu++) {
		ring = &s->rings[cpu];
		if (!ring->page)
			continue;
		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		ring->tail = ring->page->data_tail;
	}
	while ((ring = oldest(s)) != NULL && ring->next_ns <= until_ns) {
		copy_out(s, ring, ring->tail, &h, sizeof(h));
		copy_out(s, ring, ring->tail, s->record, h.size);
		ring->tail += h.size;
		dispatch(s, sink);
	}
	for (int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (s->rings[cpu].page)
			__atomic_store_n(&s->rings[cpu].page->data_tail, s->rings[cpu].tail,
					 __ATOMIC_RELEASE);
}

void sideband_free(struct sideband *s)
{
	if (!s)
		return;
	for (int cpu = 0; s->rings && cpu < s->nr_cpus; cpu++)
		if (s->rings[cpu].page)
			munmap(s->rings[cpu].page, (1 + DATA_PAGES) * s->page_size);
	for (size_t i = 0; i < s->nr_fds; i++)
		close(s->fds[i]);
	for (size_t i = 0; i < s->nr_later; i++)
		close(s->later[i].fd);
	free(s->rings);
	free(s->fds);
	free(s->tids);
	free(s->later);
	free(s);
}
