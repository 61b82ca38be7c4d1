/* probes.c - skeleton open, load, attach; and the ring that comes back */
#include "record/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
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

struct probes {
	struct mleak_bpf *skel;
	struct ring_buffer *ring;
	bool multi;
	int *multi_links; /* descriptors */
	size_t nr_multi, room_multi;
	struct bpf_link **links;
	size_t nr_links, room_links;
	struct bpf_link *exec;
};

/* Frees first, so that no block is seen given out whose free is not; returns before entries, so
 * that no entry waits for a return that is not probed. */
static const struct step {
	enum site_kind kind;
	bool is_return;
} steps[] = {{SITE_FREE, false}, {SITE_ALLOC, true}, {SITE_ALLOC, false}};

#define MAX_CLOSERS (3 * ALLOCATOR_MAX_OBJECTS)

#define NR_STEPS (sizeof(steps) / sizeof(steps[0]))

static int libbpf_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_DEBUG || !getenv("MLEAK_LIBBPF_LOG"))
		return 0;
	return vfprintf(stderr, fmt, args);
}

/* Settings that must be there before the programs are loaded. */
static int configure(struct mleak_bpf *skel, const struct target *t, const struct probes_opts *opts)
{
	struct stat ns;

	skel->rodata->target_tgid = (uint32_t)t->pid;
	skel->rodata->stack_limit = opts->stack_limit;
	if (!stat("/proc/self/ns/pid", &ns) && ns.st_ino != INITIAL_PIDNS) {
		skel->rodata->pidns_dev = ns.st_dev;
		skel->rodata->pidns_ino = ns.st_ino;
	}
	return filters_configure(opts->filters, skel);
}

static struct bpf_program *program_of(const struct probes *p, const struct step *step)
{
	if (step->kind == SITE_FREE)
		return p->skel->progs.free_entry;
	return step->is_return ? p->skel->progs.alloc_return : p->skel->progs.alloc_entry;
}

static int load(struct probes *p, const struct target *t, const struct probes_opts *opts)
{
	int err;

	p->skel = mleak_bpf__open();
	if (!p->skel)
		return -errno;
	err = configure(p->skel, t, opts);
	if (err)
		return err;
	for (size_t i = 0; p->multi && i < NR_STEPS; i++)
		bpf_program__set_expected_attach_type(program_of(p, &steps[i]),
						      UPROBE_MULTI_ATTACH_TYPE);
	err = mleak_bpf__load(p->skel);
	return err ? err : filters_name_threads(opts->filters, p->skel);
}

static void unload(struct probes *p)
{
	probes_detach(p);
	bpf_link__destroy(p->exec);
	p->exec = NULL;
	mleak_bpf__destroy(p->skel);
	p->skel = NULL;
}

/* Room for one more thing of @size in *@array.  NULL: there is no memory. */
static void *one_more(void *array, size_t nr, size_t *room, size_t size)
{
	void **at = array, *grown = *at;

	if (nr == *room) {
		grown = realloc(*at, (*room ? *room * 2 : 16) * size);
		if (!grown)
			return NULL;
		*room = *room ? *room * 2 : 16;
		*at = grown;
	}
	return (char *)grown + nr * size;
}

/* One multi link for all sites of @o that @step is for. */
static int link_multi(struct probes *p, const struct step *step, const struct alloc_object *o,
		      const char *path, pid_t pid)
{
	uint64_t offsets[ALLOCATOR_MAX_SITES], cookies[ALLOCATOR_MAX_SITES];
	struct uprobe_multi u = {.path = path,
				 .offsets = offsets,
				 .cookies = cookies,
				 .pid = pid,
				 .is_return = step->is_return};
	int *fd = one_more(&p->multi_links, p->nr_multi, &p->room_multi, sizeof(*fd));

	for (size_t i = 0; i < o->nr; i++) {
		if (o->sites[i].kind != step->kind)
			continue;
		offsets[u.nr] = o->sites[i].function + o->sites[i].offset;
		cookies[u.nr++] = o->sites[i].func;
	}
	if (!u.nr)
		return 0;
	if (!fd)
		return -ENOMEM;
	*fd = uprobe_multi_link(bpf_program__fd(program_of(p, step)), &u);
	if (*fd < 0)
		return *fd;
	p->nr_multi++;
	return 0;
}

/* A perf event for each site. */
static int link_perf(struct probes *p, const struct step *step, const struct alloc_object *o,
		     const char *path, pid_t pid)
{
	for (size_t i = 0; i < o->nr; i++) {
		const struct alloc_site *site = &o->sites[i];
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = step->is_return,
			    .bpf_cookie = site->func);
		struct bpf_link **link;

		if (site->kind != step->kind)
			continue;
		link = one_more(&p->links, p->nr_links, &p->room_links, sizeof(struct bpf_link *));
		if (!link)
			return -ENOMEM;
		*link = bpf_program__attach_uprobe_opts(program_of(p, step), pid, path,
							site->function + site->offset, &opts);
		if (!*link)
			return -errno;
		p->nr_links++;
	}
	return 0;
}

void probes_set_code(struct probes *p, const struct allocators *a)
{
	memcpy(&p->skel->bss->code, &a->code, sizeof(a->code));
}

int probes_place(struct probes *p, const struct target *t, const struct allocators *a)
{
	char path[64];
	int err = 0;

	probes_detach(p);
	/* Links that go by a main thread which has ended would see nothing. */
	if (p->multi && t->task != t->pid)
		return -ESRCH;
	probes_set_code(p, a);
	for (size_t s = 0; !err && s < NR_STEPS; s++)
		for (size_t i = 0; !err && i < a->nr; i++) {
			/* Through the descriptor: by name another file might be found than the
			 * one that is mapped. */
			snprintf(path, sizeof(path), "/proc/self/fd/%d", a->v[i].fd);
			err = p->multi ? link_multi(p, &steps[s], &a->v[i], path, t->pid)
				       : link_perf(p, &steps[s], &a->v[i], path, t->task);
		}
	return err;
}

/* Load for the kind of link that p->multi says, and attach. */
static int load_and_place(struct probes *p, const struct target *t, const struct allocators *a,
			  const struct probes_opts *opts)
{
	int err = load(p, t, opts);

	if (!err)
		err = probes_place(p, t, a);
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

static int attach_exec(struct probes *p)
{
	p->exec = bpf_program__attach_raw_tracepoint(p->skel->progs.process_exec,
						     "sched_process_exec");
	return p->exec ? 0 : -errno;
}

int probes_attach(struct probes **out, const struct target *t, const struct allocators *a,
		  const struct probes_opts *opts)
{
	struct probes *p = calloc(1, sizeof(*p));
	int err = -ENOMEM;

	*out = NULL;
	libbpf_set_print(libbpf_quiet);
	if (!p)
		goto out;
	/* Links for a process go by its main thread: where that has ended, only a perf event's, by
	 * another thread, work. */
	p->multi = opts->link == PROBE_LINK_MULTI ||
		   (opts->link == PROBE_LINK_AUTO && t->task == t->pid &&
		    !kernel_multi_filters_threads());
	err = load_and_place(p, t, a, opts);
	if (err && p->multi && opts->link == PROBE_LINK_AUTO && err != -EPERM && err != -ESRCH) {
		p->multi = false;
		err = load_and_place(p, t, a, opts);
	}
	if (!err)
		err = attach_exec(p);
	if (!err)
		filters_begin(opts->filters, p->skel);
out:
	if (err) {
		explain(t, err);
		probes_free(p);
	} else {
		*out = p;
	}
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

static void *close_link(void *fd)
{
	close(*(int *)fd);
	return NULL;
}

/* Each closing waits until no CPU runs the program any more: wait for all at once. */
static void close_all(int *fds, size_t nr)
{
	pthread_t threads[MAX_CLOSERS];
	size_t started = 0;

	while (started < nr && started < MAX_CLOSERS &&
	       !pthread_create(&threads[started], NULL, close_link, &fds[started]))
		started++;
	for (size_t i = started; i < nr; i++)
		close(fds[i]);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

void probes_detach(struct probes *p)
{
	/* A call that is noted no more needs no return. */
	if (p->skel->bss)
		p->skel->bss->code.ended = 1;
	close_all(p->multi_links, p->nr_multi);
	p->nr_multi = 0;
	while (p->nr_links)
		bpf_link__destroy(p->links[--p->nr_links]);
}

void probes_all_threads(struct probes *p)
{
	filters_all_threads(p->skel);
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
	losses->count[MLK_LOST_UNMAP] += d->unmap;
	filters_count(p->skel, losses);
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
	free(p->multi_links);
	free(p->links);
	free(p);
}
