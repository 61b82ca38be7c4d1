/* kmem_probes.c - see kmem_probes.h */
#include "record/kernel/kmem_probes.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kmem.bpf.skel.h"
#include "mleak.h"
#include "record/base/kernel.h"
#include "record/base/proc.h"

#define BATCH 4096 /* blocks that are read at once */

struct kmem_probes {
	struct kmem_bpf *skel;
	struct ring_buffer *ring;
	int (*event)(void *arg, void *data, size_t size);
	void *event_arg;
	unsigned int blind;
	int cpus;
	uint64_t *counts; /* KMEM_COUNT_NR for each CPU */
	uint64_t *addrs;
	struct kmem_block *blocks;
};

static int libbpf_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_DEBUG || !getenv("MLEAK_LIBBPF_LOG") ? 0
								    : vfprintf(stderr, fmt, args);
}

/* The arguments of tracepoint @name by the kernel's BTF, behind the first, which is no argument.
 * Their number; 0: there is no such tracepoint. */
static size_t arguments(const struct btf *btf, const char *name, const struct btf_param **params)
{
	char type[64];
	const struct btf_type *t;
	int id;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL; /* a pointer */
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	if (!t || !btf_is_func_proto(t) || btf_vlen(t) < 1)
		return 0;
	*params = btf_params(t) + 1;
	return btf_vlen(t) - 1u;
}

static bool is_pointer(const struct btf *btf, const struct btf_param *param)
{
	const struct btf_type *t = btf__type_by_id(btf, param->type);

	return t && btf_is_ptr(t);
}

/* How this kernel's tracepoints tell what they tell: include/trace/events/kmem.h from 5.15 on. */
static int choose_forms(struct kmem_bpf *skel, const struct btf *btf)
{
	const struct btf_param *params;
	int page = btf__find_by_name_kind(btf, "page", BTF_KIND_STRUCT);
	size_t nr = arguments(btf, "kmem_cache_alloc", &params);

	/* Pages' addresses are computed from where their descriptions are: mm_types.h. */
	if (page <= 0 || btf__type_by_id(btf, (__u32)page)->size != 64) {
		log_error("cannot record the kernel's memory: its struct page is not of 64 bytes");
		return -EOPNOTSUPP;
	}
	if (nr < 5 || arguments(btf, "mm_page_alloc", &params) < 3)
		return -ENOENT;
	arguments(btf, "kmem_cache_alloc", &params);
	if (!is_pointer(btf, &params[2]))
		skel->rodata->cache_form = 1;
	else
		skel->rodata->cache_form = nr > 5 ? 2 : 0;
	if (arguments(btf, "kmalloc", &params) < 5)
		return -ENOENT;
	skel->rodata->kmalloc_shift = is_pointer(btf, &params[2]);
	skel->rodata->percpu_form = arguments(btf, "percpu_alloc_percpu", &params) >= 10;
	bpf_program__set_autoload(skel->progs.kmalloc_node,
				  arguments(btf, "kmalloc_node", &params) > 0);
	bpf_program__set_autoload(skel->progs.kmem_cache_alloc_node,
				  arguments(btf, "kmem_cache_alloc_node", &params) > 0);
	return 0;
}

/* May a program of this kind stand at the beginning of the kernel's function @name?  Some kernels
 * and machines refuse them all. */
static bool has_function(const struct btf *btf, const char *name)
{
	return btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
}

static bool takes_functions(const struct btf *btf)
{
	const struct bpf_insn nothing[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
					   {.code = BPF_JMP | BPF_EXIT}};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	int id = btf__find_by_name_kind(btf, "kmem_cache_free_bulk", BTF_KIND_FUNC), fd;

	if (id <= 0)
		return false;
	opts.attach_btf_id = (__u32)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "mleak_try", "GPL", nothing, 2, &opts);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void configure(struct kmem_probes *p, const struct kmem_probes_opts *opts,
		      const struct btf *btf)
{
	struct kmem_bpf *skel = p->skel;
	struct utsname u;
	/* The programs ask for arguments by a helper of 5.17. */
	bool functions =
		!uname(&u) && kernel_release_at_least(u.release, 5, 17, 0) && takes_functions(btf);

	skel->rodata->all_events = opts->all_events;
	skel->rodata->own_tgid = (__u32)getpid();
	skel->rodata->nr_cpus = (__u32)p->cpus;
	skel->rodata->min_size = opts->min_size;
	skel->rodata->max_size = opts->max_size ? opts->max_size : UINT64_MAX;
	skel->rodata->sample_every = opts->sample_every ? (__u32)opts->sample_every : 1;
	skel->rodata->only_cgroup = opts->cgroup != 0;
	skel->rodata->cgroup = opts->cgroup;
	skel->rodata->only_comm = opts->comm != NULL;
	if (opts->comm)
		strncpy((char *)(uintptr_t)skel->rodata->comm, opts->comm, KMEM_COMM - 1);
	bpf_program__set_autoload(skel->progs.percpu_alloc, opts->percpu);
	bpf_program__set_autoload(skel->progs.percpu_free, opts->percpu);
	bpf_program__set_autoload(skel->progs.free_bulk, functions);
	bpf_program__set_autoload(skel->progs.free_sheaf,
				  functions && has_function(btf, "__kfree_rcu_sheaf"));
	if (!functions)
		p->blind |= KMEM_BLIND_BULK;
}

static int take_event(void *arg, void *data, size_t size)
{
	struct kmem_probes *p = arg;

	return p->event(p->event_arg, data, size);
}

static bool is_locked_down(void)
{
	char text[128];

	return proc_read(text, sizeof(text), "/sys/kernel/security/lockdown") &&
	       strstr(text, "[confidentiality]");
}

static int load(struct kmem_probes *p, const struct kmem_probes_opts *opts, const struct btf *btf)
{
	int err;

	p->skel = kmem_bpf__open();
	if (!p->skel)
		return -errno;
	err = choose_forms(p->skel, btf);
	if (err == -EOPNOTSUPP)
		return err;
	if (err) {
		log_error(
			"cannot record the kernel's memory: this kernel has no tracepoints for it "
			"(kmem:kmalloc and others)");
		return err;
	}
	configure(p, opts, btf);
	err = bpf_map__set_max_entries(p->skel->maps.blocks, opts->max_blocks);
	if (!err)
		err = kmem_bpf__load(p->skel);
	if (!err)
		err = kmem_bpf__attach(p->skel);
	if (!err) {
		p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.ring), take_event, p, NULL);
		err = p->ring ? 0 : -errno;
	}
	if (err && is_locked_down())
		log_error("cannot record the kernel's memory: the kernel is locked down "
			  "(lockdown=confidentiality), so no eBPF program may read its memory");
	else if (err)
		log_error("cannot record the kernel's memory: the kernel refused the eBPF programs "
			  "(%s)%s",
			  strerror(-err),
			  err == -EPERM || err == -EACCES
				  ? "; it takes root, or CAP_BPF and CAP_PERFMON"
				  : "");
	return err;
}

static int allocate(struct kmem_probes *p)
{
	p->cpus = libbpf_num_possible_cpus();
	if (p->cpus < 1)
		return p->cpus;
	p->counts = calloc((size_t)p->cpus * KMEM_COUNT_NR, sizeof(*p->counts));
	p->addrs = calloc(BATCH, sizeof(*p->addrs));
	p->blocks = calloc(BATCH, sizeof(*p->blocks));
	return p->counts && p->addrs && p->blocks ? 0 : -ENOMEM;
}

int kmem_probes_attach(struct kmem_probes **out, const struct kmem_probes_opts *opts)
{
	struct kmem_probes *p = calloc(1, sizeof(*p));
	struct btf *btf;
	int err;

	*out = NULL;
	libbpf_set_print(libbpf_quiet);
	if (!p)
		return -ENOMEM;
	err = allocate(p);
	if (err) {
		log_error("cannot record the kernel's memory: %s", strerror(-err));
		kmem_probes_free(p);
		return err;
	}
	btf = btf__load_vmlinux_btf();
	if (!btf) {
		err = -errno;
		log_error("cannot record the kernel's memory: the kernel has no BTF "
			  "(/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)");
	} else {
		err = load(p, opts, btf);
	}
	btf__free(btf);
	if (err)
		kmem_probes_free(p);
	else
		*out = p;
	return err;
}

void kmem_probes_arm(struct kmem_probes *p, bool armed)
{
	__atomic_store_n(&p->skel->bss->armed, armed, __ATOMIC_SEQ_CST);
}

unsigned int kmem_probes_blind(const struct kmem_probes *p)
{
	return p->blind;
}

void kmem_probes_look(struct kmem_probes *p, uint64_t cut_ns)
{
	__atomic_store_n(&p->skel->bss->looked_ns, cut_ns, __ATOMIC_SEQ_CST);
}

int kmem_probes_each(struct kmem_probes *p,
		     int (*visit)(void *arg, uint64_t addr, const struct kmem_block *block),
		     void *arg)
{
	int fd = bpf_map__fd(p->skel->maps.blocks), err = 0, stop = 0;
	uint64_t at = 0, next;
	void *from = NULL;

	while (!err && !stop) {
		__u32 nr = BATCH;

		err = bpf_map_lookup_batch(fd, from, &next, p->addrs, p->blocks, &nr, NULL);
		if (err && err != -ENOENT)
			return err;
		for (__u32 i = 0; i < nr && !stop; i++)
			stop = visit(arg, p->addrs[i], &p->blocks[i]);
		at = next;
		from = &at;
	}
	return stop;
}

int kmem_probes_consume(struct kmem_probes *p, int (*event)(void *arg, void *data, size_t size),
			void *arg)
{
	int n;

	p->event = event;
	p->event_arg = arg;
	n = ring_buffer__consume(p->ring);
	return n < 0 ? n : 0;
}

size_t kmem_probes_stack(const struct kmem_probes *p, uint32_t number,
			 uint64_t pcs[KMEM_STACK_DEPTH])
{
	const struct bpf_map *map =
		number < KMEM_STACKS ? p->skel->maps.stacks : p->skel->maps.spare_stacks;
	__u32 key = number < KMEM_STACKS ? number : number - KMEM_STACKS;
	size_t nr = 0;

	memset(pcs, 0, KMEM_STACK_DEPTH * sizeof(*pcs));
	if (number == KMEM_NO_STACK || bpf_map_lookup_elem(bpf_map__fd(map), &key, pcs))
		return 0;
	while (nr < KMEM_STACK_DEPTH && pcs[nr])
		nr++;
	return nr;
}

int kmem_probes_read(const struct kmem_probes *p, struct kmem_read *read)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = read, .ctx_size_in = sizeof(*read));
	int err = bpf_prog_test_run_opts(bpf_program__fd(p->skel->progs.read_memory), &opts);

	read->bytes[sizeof(read->bytes) - 1] = '\0';
	return err ? err : read->err < 0 ? -EFAULT : 0;
}

/* How often @prog was not run because it interrupted itself. */
static uint64_t missed(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);
	int fd = bpf_program__fd(prog);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.recursion_misses;
}

int kmem_probes_counts(const struct kmem_probes *p, uint64_t counts[KMEM_COUNT_NR],
		       uint64_t *missed_allocs, uint64_t *missed_frees)
{
	const struct bpf_program *allocs[] = {
		p->skel->progs.kmalloc,	     p->skel->progs.kmem_cache_alloc,
		p->skel->progs.kmalloc_node, p->skel->progs.kmem_cache_alloc_node,
		p->skel->progs.page_alloc,   p->skel->progs.percpu_alloc};
	const struct bpf_program *frees[] = {
		p->skel->progs.kfree,	   p->skel->progs.kmem_cache_free,
		p->skel->progs.page_free,  p->skel->progs.free_bulk,
		p->skel->progs.free_sheaf, p->skel->progs.percpu_free};
	__u32 zero = 0;
	int err = bpf_map_lookup_elem(bpf_map__fd(p->skel->maps.counts), &zero, p->counts);

	*missed_allocs = *missed_frees = 0;
	memset(counts, 0, KMEM_COUNT_NR * sizeof(*counts));
	for (int cpu = 0; !err && cpu < p->cpus; cpu++)
		for (int i = 0; i < KMEM_COUNT_NR; i++)
			counts[i] += p->counts[cpu * KMEM_COUNT_NR + i];
	for (size_t i = 0; i < sizeof(allocs) / sizeof(allocs[0]); i++)
		*missed_allocs += missed(allocs[i]);
	for (size_t i = 0; i < sizeof(frees) / sizeof(frees[0]); i++)
		*missed_frees += missed(frees[i]);
	/* What the second program saw is not lost. */
	*missed_frees -=
		counts[KMEM_RESCUED] < *missed_frees ? counts[KMEM_RESCUED] : *missed_frees;
	return err;
}

void kmem_probes_free(struct kmem_probes *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	kmem_bpf__destroy(p->skel);
	free(p->counts);
	free(p->addrs);
	free(p->blocks);
	free(p);
}
