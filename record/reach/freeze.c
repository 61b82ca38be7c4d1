/* freeze.c - see freeze.h */
#include "record/reach/freeze.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/ptrace/stop_all.h"
#include "record/reach/walk.h"
#include "record/target/pages.h"

#define PIECE	    (4u << 20) /* bytes that a thread copies at once */
#define MOST_SHARED 1024       /* KiB of dirty pages that others may have, too */

/* A copy under way. */
struct freeze {
	const struct target *target;
	int fd, maps_fd, pagemap;
	int mem;     /* -1: process_vm_readv(2) does no harm */
	uint8_t *to; /* the file */
	uint64_t room, at;
	struct freeze_header header;
	char *maps;
	size_t maps_bytes, maps_room;
	struct freeze_run *runs;
	size_t nr_runs, room_runs;
	struct mlk_reach_thread *threads;
	size_t nr_threads;
	struct stop_all stop;
	_Atomic uint64_t piece; /* that is copied next; of all runs of PIECE bytes at most */
	int err;
};

/* All of /proc/PID/maps, and a NUL. */
static int read_maps(struct freeze *f)
{
	for (;;) {
		ssize_t got;

		if (f->maps_room - f->maps_bytes < 65536) {
			char *more = realloc(f->maps, f->maps_room * 2 + 131072);

			if (!more)
				return -ENOMEM;
			f->maps = more;
			f->maps_room = f->maps_room * 2 + 131072;
		}
		got = pread(f->maps_fd, f->maps + f->maps_bytes, f->maps_room - f->maps_bytes - 1,
			    (off_t)f->maps_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		f->maps[f->maps_bytes + (size_t)got] = '\0';
		if (!got)
			break;
		f->maps_bytes += (size_t)got;
	}
	f->maps_bytes++;
	return 0;
}

static int add_run(struct freeze *f, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t bytes = to - from < PIECE ? to - from : PIECE;

		if (f->room - f->at < bytes)
			return -ENOSPC;
		if (grow_array(&f->runs, f->nr_runs, &f->room_runs, sizeof(*f->runs)))
			return -ENOMEM;
		f->runs[f->nr_runs++] = (struct freeze_run){from, bytes, f->at, 0};
		f->at += bytes;
		from += bytes;
	}
	return 0;
}

/* What is there to be copied. */
static int find_runs(struct freeze *f)
{
	struct mlk_range *ranges = NULL;
	struct pages *pages = calloc(1, sizeof(*pages));
	char *text = malloc(f->maps_bytes);
	struct maps maps = {0};
	uint64_t from, to;
	size_t nr = 0;
	int err = pages && text ? 0 : -ENOMEM, more;

	if (!err) {
		memcpy(text, f->maps, f->maps_bytes);
		err = maps_parse(&maps, text);
	}
	if (!err)
		err = reach_ranges(maps.v, maps.nr, &ranges, &nr);
	for (size_t i = 0; i < nr && !err; i++) {
		pages->fd = f->pagemap;
		pages_begin(pages, ranges[i].start);
		while (!err && (more = pages_next(pages, ranges[i].end, &from, &to)) != 0)
			err = more < 0 ? more : add_run(f, from, to);
	}
	free(ranges);
	free(pages);
	free(text);
	maps_release(&maps);
	return err;
}

static ssize_t copy_some(const struct freeze *f, void *to, uint64_t from, size_t len)
{
	struct iovec local = {to, len}, remote = {(void *)(uintptr_t)from, len};

	if (f->mem >= 0)
		return pread(f->mem, to, len, (off_t)from);
	return process_vm_readv(f->target->pid, &local, 1, &remote, 1, 0);
}

/* Copy @run; by pages, if a part of it cannot be read. */
static void copy_run(struct freeze *f, struct freeze_run *run)
{
	uint64_t done = 0;

	while (done < run->bytes) {
		ssize_t got =
			copy_some(f, f->to + run->at + done, run->start + done, run->bytes - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0) {
			done += (uint64_t)got;
			continue;
		}
		memset(f->to + run->at + done, 0, PAGES_PAGE);
		run->unread += PAGES_PAGE;
		done += PAGES_PAGE;
	}
}

static void *copy(void *arg)
{
	struct freeze *f = arg;
	uint64_t i;

	while ((i = f->piece++) < f->nr_runs)
		copy_run(f, &f->runs[i]);
	return NULL;
}

/* By two threads: one alone takes twice as long. */
static void copy_all(struct freeze *f)
{
	pthread_t other;
	bool two = f->nr_runs > 8 && !pthread_create(&other, NULL, copy, f);

	copy(f);
	if (two)
		pthread_join(other, NULL);
}

static int read_regs(struct freeze *f)
{
	struct user_regs_struct r;
	pid_t tid;

	f->threads = calloc(f->stop.nr + 1, sizeof(*f->threads));
	if (!f->threads)
		return -ENOMEM;
	for (size_t i = 0; i < f->stop.nr; i++) {
		struct mlk_reach_thread *t = &f->threads[f->nr_threads];

		if (stop_all_regs(&f->stop, i, &tid, &r))
			continue;
		f->nr_threads++;
		*t = (struct mlk_reach_thread){.tid = (uint32_t)tid,
					       .how = MLK_REACH_STOPPED,
					       .known = (1u << MLK_REACH_REGS) - 1,
					       .regs = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
							r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
							r.r12, r.r13, r.r14, r.r15, r.rip}};
	}
	return 0;
}

/* The process stands still from here to there. */
static int stop_and_copy(struct freeze *f)
{
	int err;

	f->header.begin_ns = clock_now_ns();
	err = stop_all_begin(&f->stop, f->target->pid, NULL, NULL);
	if (!err)
		err = read_maps(f);
	if (!err)
		err = find_runs(f);
	if (!err)
		err = read_regs(f);
	if (!err)
		copy_all(f);
	stop_all_end(&f->stop);
	f->header.end_ns = clock_now_ns();
	return err;
}

static void *freeze(void *arg)
{
	struct freeze *f = arg;

	/* what is stopped does not wait for what else there is to do; refused without privileges */
	setpriority(PRIO_PROCESS, 0, -20);
	f->err = stop_and_copy(f);
	return NULL;
}

/* Append @bytes to the file, at a multiple of 8: *@at. */
static int append(struct freeze *f, const void *what, size_t bytes, uint64_t *at)
{
	size_t done = 0;

	*at = f->at = (f->at + 7) & ~7ull;
	while (done < bytes) {
		ssize_t n = pwrite(f->fd, (const char *)what + done, bytes - done,
				   (off_t)(f->at + done));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return n ? -errno : -ENOSPC;
		done += n > 0 ? (size_t)n : 0;
	}
	f->at += bytes;
	return 0;
}

static int write_rest(struct freeze *f)
{
	struct freeze_header *h = &f->header;
	int err;

	f->at = f->room;
	h->maps_bytes = f->maps_bytes;
	h->nr_runs = f->nr_runs;
	h->nr_threads = f->nr_threads;
	err = append(f, f->maps, f->maps_bytes, &h->maps_at);
	if (!err)
		err = append(f, f->runs, f->nr_runs * sizeof(*f->runs), &h->runs_at);
	if (!err)
		err = append(f, f->threads, f->nr_threads * sizeof(*f->threads), &h->threads_at);
	if (!err)
		memcpy(f->to, h, sizeof(*h));
	return err;
}

/* In a thread of its own, by whose end all is let go, whatever has not stopped. */
static int run(struct freeze *f)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&thread, NULL, freeze, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return err;
	pthread_join(thread, NULL);
	return f->err ? f->err : write_rest(f);
}

/* process_vm_readv(2) is twice as fast as /proc/PID/mem, but pins pages: since Linux 5.19, one that
 * a process shares with those that it forked becomes two by that.  Returns the descriptor to read
 * from, -1: not needed, or another -errno. */
static int choose_mem(const struct target *t)
{
	char text[4096];
	const char *at;
	long shared;

	proc_read(text, sizeof(text), "/proc/%d/smaps_rollup", (int)t->task);
	at = strstr(text, "\nShared_Dirty:");
	if (at && sscanf(at + 14, "%ld", &shared) == 1 && shared <= MOST_SHARED)
		return -1;
	return target_open_file(t, HELPER_MEM);
}

int freeze_take(const struct target *t, int fd, uint64_t room)
{
	struct freeze f = {.target = t, .fd = fd, .room = room, .at = FREEZE_DATA};
	void *to = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	int err = to == MAP_FAILED ? -errno : 0;

	f.to = to;
	f.mem = choose_mem(t);
	f.maps_fd = err ? -1 : target_open_file(t, HELPER_MAPS);
	f.pagemap = err ? -1 : target_open_file(t, HELPER_PAGEMAP);
	if (!err)
		err = f.maps_fd < 0 ? f.maps_fd : f.pagemap < 0 ? f.pagemap : 0;
	if (!err)
		err = run(&f);
	if (f.mem >= 0)
		close(f.mem);
	if (f.maps_fd >= 0)
		close(f.maps_fd);
	if (f.pagemap >= 0)
		close(f.pagemap);
	if (to != MAP_FAILED)
		munmap(to, room);
	free(f.maps);
	free(f.runs);
	free(f.threads);
	return err;
}
