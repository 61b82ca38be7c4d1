/* task_regs.c - see task_regs.h */
#include "record/reach/task_regs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "bpf/reach.h"
#include "reach.bpf.skel.h"
#include "record/reach/roots.h"

#define TICK_NS	      1000000u
#define INITIAL_PIDNS 0xEFFFFFFCu /* inode of the first pid namespace, linux/proc_ns.h */

_Static_assert(REACH_REGS == MLK_REACH_REGS, "the program has what the trace can have");

struct task_regs {
	struct reach_bpf *skel;
	struct bpf_link *link;
	int *clocks; /* of each CPU; -1: it has none */
	struct bpf_link **ticks;
	int nr;
};

static int libbpf_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_DEBUG || !getenv("MLEAK_LIBBPF_LOG") ? 0
								    : vfprintf(stderr, fmt, args);
}

static int open_clock(int cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = TICK_NS,
				       .disabled = 1};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A clock for each CPU; without them, nothing is known of threads that run. */
static void open_clocks(struct task_regs *r)
{
	int nr = libbpf_num_possible_cpus();

	r->clocks = nr > 0 ? calloc((size_t)nr, sizeof(*r->clocks)) : NULL;
	r->ticks = nr > 0 ? calloc((size_t)nr, sizeof(struct bpf_link *)) : NULL;
	if (!r->clocks || !r->ticks)
		return;
	for (; r->nr < nr; r->nr++) {
		int fd = open_clock(r->nr);

		r->clocks[r->nr] = fd;
		if (fd < 0)
			continue; /* most often it is not online */
		r->ticks[r->nr] = bpf_program__attach_perf_event(r->skel->progs.tick, fd);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		/* the link has it from here on, and closes it */
		if (!r->ticks[r->nr]) {
			close(fd);
			r->clocks[r->nr] = -1;
		}
	}
}

int task_regs_open(struct task_regs **out)
{
	struct task_regs *r = calloc(1, sizeof(*r));
	struct stat ns;
	int err = 0;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	libbpf_set_print(libbpf_quiet);
	r->skel = reach_bpf__open();
	if (!r->skel) {
		err = -errno;
		free(r);
		return err;
	}
	if (!stat("/proc/self/ns/pid", &ns) && ns.st_ino != INITIAL_PIDNS)
		r->skel->rodata->pidns_ino = ns.st_ino;
	err = reach_bpf__load(r->skel);
	if (!err) {
		r->link = bpf_program__attach_iter(r->skel->progs.each_thread, NULL);
		err = r->link ? 0 : -errno;
	}
	if (err) {
		task_regs_close(r);
		return err;
	}
	open_clocks(r);
	*out = r;
	return 0;
}

void task_regs_sample(struct task_regs *r, pid_t pid)
{
	r->skel->bss->generation++;
	r->skel->bss->wanted = (__u32)pid;
	for (int i = 0; i < r->nr; i++)
		if (r->clocks[i] >= 0)
			ioctl(r->clocks[i], pid ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
			      0);
}

/* What is known of a process so far. */
struct taken {
	struct mlk_reach_thread *threads;
	size_t nr, room;
	struct reach_roots *roots; /* NULL: not asked for */
};

static int take(struct taken *taken, const struct reach_regs *regs)
{
	struct mlk_reach_thread *t;

	if (regs->ran == REACH_ALTSTACK)
		return taken->roots ? roots_add(taken->roots, MLK_ROOT_ALTSTACK, regs->tid,
						regs->regs[0])
				    : 0;
	if (grow_array(&taken->threads, taken->nr, &taken->room, sizeof(*t)))
		return -ENOMEM;
	t = &taken->threads[taken->nr++];
	*t = (struct mlk_reach_thread){.tid = regs->tid,
				       .how = regs->ran ? MLK_REACH_SAMPLED : MLK_REACH_WAITING,
				       .known = (1u << MLK_REACH_REGS) - 1};
	for (int i = 0; i < MLK_REACH_REGS; i++)
		t->regs[i] = regs->regs[i];
	return 0;
}

int task_regs_read(struct task_regs *r, pid_t pid, struct mlk_reach_thread **threads, size_t *nr,
		   struct reach_roots *roots)
{
	int fd = bpf_iter_create(bpf_link__fd(r->link));
	struct taken taken = {.roots = roots};
	struct reach_regs regs[64];
	size_t have = 0;
	int err = 0;

	*threads = NULL;
	*nr = 0;
	if (fd < 0)
		return -errno;
	r->skel->bss->wanted = (__u32)pid;
	while (!err) {
		/* it may be cut anywhere */
		ssize_t got = read(fd, (char *)regs + have, sizeof(regs) - have);
		size_t whole;

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0) {
			err = got ? -errno : 0;
			break;
		}
		have += (size_t)got;
		whole = have / sizeof(regs[0]);
		for (size_t i = 0; i < whole && !err; i++)
			err = take(&taken, &regs[i]);
		have -= whole * sizeof(regs[0]);
		if (have && whole)
			memmove(regs, &regs[whole], have);
	}
	close(fd);
	if (err) {
		free(taken.threads);
	} else {
		*threads = taken.threads;
		*nr = taken.nr;
	}
	return err;
}

void task_regs_close(struct task_regs *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->nr; i++)
		bpf_link__destroy(r->ticks[i]);
	free(r->ticks);
	free(r->clocks);
	bpf_link__destroy(r->link);
	reach_bpf__destroy(r->skel);
	free(r);
}
