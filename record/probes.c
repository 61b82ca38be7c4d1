/* probes.c - skeleton open, load, attach; and the ring that comes back */
#include "record/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/event.h"
#include "mleak.bpf.skel.h"
#include "mleak.h"
#include "record/allocator.h"
#include "record/kernel.h"
#include "record/uprobe_multi.h"

/* Inode of the initial pid namespace, include/linux/proc_ns.h: PROC_PID_INIT_INO. */
#define INITIAL_PIDNS 0xeffffffcul

/* Three multi links, or an entry and a return probe for each function. */
#define MAX_LINKS (2 * ALLOCATOR_MAX_SITES)

struct probes {
	struct mleak_bpf *skel;
	struct ring_buffer *ring;
	bool multi;
	int multi_links[3];
	struct bpf_link *links[MAX_LINKS];
	size_t nr_links;
};

static int libbpf_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_DEBUG || !getenv("MLEAK_LIBBPF_LOG"))
		return 0;
	return vfprintf(stderr, fmt, args);
}

/* Settings that must be there before the programs are loaded. */
static void configure(struct mleak_bpf *skel, const struct target *t, uint32_t stack_limit)
{
	struct stat ns;

	skel->rodata->target_tgid = (uint32_t)t->pid;
	skel->rodata->stack_limit = stack_limit;
	if (!stat("/proc/self/ns/pid", &ns) && ns.st_ino != INITIAL_PIDNS) {
		skel->rodata->pidns_dev = ns.st_dev;
		skel->rodata->pidns_ino = ns.st_ino;
	}
}

static int load(struct probes *p, const struct target *t, uint32_t stack_limit)
{
	p->skel = mleak_bpf__open();
	if (!p->skel)
		return -errno;
	configure(p->skel, t, stack_limit);
	if (p->multi) {
		struct bpf_program *programs[] = {p->skel->progs.alloc_entry,
						  p->skel->progs.alloc_return,
						  p->skel->progs.free_entry};

		for (size_t i = 0; i < 3; i++)
			bpf_program__set_expected_attach_type(programs[i],
							      UPROBE_MULTI_ATTACH_TYPE);
	}
	return mleak_bpf__load(p->skel);
}

static void unload(struct probes *p)
{
	probes_detach(p);
	mleak_bpf__destroy(p->skel);
	p->skel = NULL;
}

/* One multi link for all sites that are (@frees) or are not free functions; *@link is its
 * descriptor. */
static int multi_link(int *link, const struct bpf_program *prog, const struct allocator *a,
		      struct uprobe_multi *u, bool frees)
{
	uint64_t offsets[ALLOCATOR_MAX_SITES], cookies[ALLOCATOR_MAX_SITES];

	u->offsets = offsets;
	u->cookies = cookies;
	u->nr = 0;
	for (size_t i = 0; i < a->nr; i++) {
		if ((a->sites[i].func == 0) != frees)
			continue;
		offsets[u->nr] = a->sites[i].file_offset;
		cookies[u->nr++] = a->sites[i].func;
	}
	*link = uprobe_multi_link(bpf_program__fd(prog), u);
	return *link < 0 ? *link : 0;
}

/* Frees first, so that no block is seen given out whose free is not; returns before entries, so
 * that no entry waits for a return that is not probed. */
static int attach_multi(struct probes *p, const struct allocator *a, const char *path, pid_t pid)
{
	struct uprobe_multi u = {.path = path, .pid = pid};
	int err = multi_link(&p->multi_links[2], p->skel->progs.free_entry, a, &u, true);

	if (err)
		return err;
	u.is_return = true;
	err = multi_link(&p->multi_links[1], p->skel->progs.alloc_return, a, &u, false);
	if (err)
		return err;
	u.is_return = false;
	return multi_link(&p->multi_links[0], p->skel->progs.alloc_entry, a, &u, false);
}

static int perf_link(struct probes *p, const struct bpf_program *prog,
		     const struct alloc_site *site, bool is_return, const char *path, pid_t pid)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = is_return, .bpf_cookie = site->func);
	struct bpf_link *link =
		bpf_program__attach_uprobe_opts(prog, pid, path, site->file_offset, &opts);

	if (!link)
		return -errno;
	p->links[p->nr_links++] = link;
	return 0;
}

static int attach_perf(struct probes *p, const struct allocator *a, const char *path, pid_t pid)
{
	const struct bpf_program *passes[] = {
		p->skel->progs.free_entry, p->skel->progs.alloc_return, p->skel->progs.alloc_entry};

	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < a->nr; i++) {
			int err = 0;

			if ((a->sites[i].func == 0) == (pass == 0))
				err = perf_link(p, passes[pass], &a->sites[i], pass == 1, path,
						pid);
			if (err)
				return err;
		}
	return 0;
}

/* Load for the kind of link that p->multi says, and attach. */
static int load_and_attach(struct probes *p, const struct target *t, const struct allocator *a,
			   const char *path, uint32_t stack_limit)
{
	int err = load(p, t, stack_limit);

	if (!err)
		err = p->multi ? attach_multi(p, a, path, t->pid) : attach_perf(p, a, path, t->pid);
	if (err)
		unload(p);
	return err;
}

static void explain(const struct target *t, int err)
{
	if (err == -EPERM || err == -EACCES)
		log_error("cannot probe process %d: BPF needs root, or CAP_BPF and CAP_PERFMON "
			  "(CAP_SYS_ADMIN with --uprobes=perf)",
			  (int)t->pid);
	else if (err == -ESRCH)
		log_error("cannot probe process %d: it has ended", (int)t->pid);
	else if (access("/sys/kernel/btf/vmlinux", R_OK))
		log_error(
			"cannot probe process %d: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), "
			"which mleak's BPF programs need",
			(int)t->pid);
	else
		log_error("cannot probe process %d: the kernel refused the BPF programs or probes "
			  "(%s); "
			  "MLEAK_LIBBPF_LOG=1 in the environment shows libbpf's account",
			  (int)t->pid, strerror(-err));
}

static struct probes *probes_new(void)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (p)
		for (int i = 0; i < 3; i++)
			p->multi_links[i] = -1;
	return p;
}

static int attach_exec(struct probes *p)
{
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(p->skel->progs.process_exec,
								   "sched_process_exec");

	if (!link)
		return -errno;
	p->links[p->nr_links++] = link;
	return 0;
}

_Static_assert(MAX_LINKS >= 2 * ALLOCATOR_MAX_SITES, "and process_exec, for free takes only one");

int probes_attach(struct probes **out, const struct target *t, const struct mlk_mapping *libc,
		  enum probe_link link, uint32_t stack_limit)
{
	struct allocator a;
	struct probes *p = NULL;
	char path[64];
	int fd, err;

	*out = NULL;
	libbpf_set_print(libbpf_quiet);
	fd = target_open_mapped(t, libc);
	if (fd < 0) {
		log_error("cannot open '%s', which process %d has mapped: %s", libc->path,
			  (int)t->pid, strerror(-fd));
		return fd;
	}
	err = allocator_find(&a, fd, libc->path);
	if (err)
		goto out;
	p = probes_new();
	if (!p) {
		err = -ENOMEM;
		explain(t, err);
		goto out;
	}
	/* Through the descriptor: by name another file might be found than the one that is mapped.
	 */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	p->multi = link == PROBE_LINK_MULTI ||
		   (link == PROBE_LINK_AUTO && !kernel_multi_filters_threads());
	err = load_and_attach(p, t, &a, path, stack_limit);
	if (err && p->multi && link == PROBE_LINK_AUTO && err != -EPERM && err != -ESRCH) {
		p->multi = false;
		err = load_and_attach(p, t, &a, path, stack_limit);
	}
	if (!err)
		err = attach_exec(p);
	if (err)
		explain(t, err);
out:
	close(fd);
	if (err)
		probes_free(p);
	else
		*out = p;
	return err;
}

int probes_set_consumer(struct probes *p, const struct probes_consumer *consumer)
{
	p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.events), consumer->event,
				   consumer->ctx, NULL);
	return p->ring ? 0 : -errno;
}

int probes_fd(const struct probes *p)
{
	return ring_buffer__epoll_fd(p->ring);
}

int probes_consume(struct probes *p)
{
	return ring_buffer__consume(p->ring);
}

void probes_detach(struct probes *p)
{
	/* Entries first: a call that is noted no more needs no return. */
	for (int i = 0; i < 3; i++) {
		if (p->multi_links[i] >= 0)
			close(p->multi_links[i]);
		p->multi_links[i] = -1;
	}
	while (p->nr_links)
		bpf_link__destroy(p->links[--p->nr_links]);
}

void probes_losses(const struct probes *p, struct mlk_losses *losses)
{
	const struct event_drops *d = (const struct event_drops *)&p->skel->bss->drops;

	losses->count[MLK_LOST_ALLOC] += d->alloc;
	losses->count[MLK_LOST_FREE] += d->free;
	losses->count[MLK_LOST_RELEASE] += d->release;
	losses->count[MLK_LOST_RESTORE] += d->restore;
	losses->count[MLK_LOST_RETURN] += d->ret;
	losses->count[MLK_LOST_STATE] += d->state;
	losses->count[MLK_LOST_POINTER] += d->pointer;
	losses->count[MLK_LOST_EXEC] += d->exec;
}

const char *probes_backend(const struct probes *p)
{
	return p->multi ? "bpf uprobe_multi" : "bpf perf uprobes";
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	if (p->skel)
		unload(p);
	free(p);
}
