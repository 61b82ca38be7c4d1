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
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kmem.bpf.skel.h"
#include "mleak.h"
#include "record/base/kernel.h"
#include "record/base/proc.h"
#include "record/kernel/kmem_forms.h"
#include "record/kernel/kmem_users.h"

#define CHECK_EACH 1024 /* of the stacks that are known */
#define LEAST_BITS 13	/* of the number of places in the table */

/* A map of the programs in our memory. */
struct mapped {
	void *at;
	size_t len;
};

struct kmem_probes {
	struct kmem_bpf *skel;
	struct ring_buffer *ring;
	int (*event)(void *arg, void *data, size_t size);
	void *event_arg;
	unsigned int blind;
	int cpus;
	uint64_t *counts; /* KMEM_COUNT_NR for each CPU */
	struct mapped blocks, filled, rules, users;
	uint8_t *left; /* by page of the table: it has blocks that were too young for the last look
			*/
};

static int libbpf_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_DEBUG || !getenv("MLEAK_LIBBPF_LOG") ? 0
								    : vfprintf(stderr, fmt, args);
}

/* For tests: one of how many known stacks is walked by the kernel, and compared. */
static uint32_t check_each(void)
{
	const char *text = getenv("MLEAK_CHECK_STACKS");
	unsigned long nr = text ? strtoul(text, NULL, 10) : 0;

	return nr && nr < UINT32_MAX ? (uint32_t)nr : CHECK_EACH;
}

static void configure(struct kmem_probes *p, const struct kmem_probes_opts *opts,
		      const struct btf *btf)
{
	struct kmem_bpf *skel = p->skel;
	struct utsname u;
	/* The programs ask for arguments by a helper of 5.17. */
	bool functions = !uname(&u) && kernel_release_at_least(u.release, 5, 17, 0) &&
			 kmem_forms_take_functions(btf);

	skel->rodata->check_each = check_each();
	skel->rodata->all_events = opts->all_events;
	skel->rodata->nr_cpus = (__u32)p->cpus;
	skel->rodata->min_size = opts->min_size;
	skel->rodata->max_size = opts->max_size ? opts->max_size : UINT64_MAX;
	skel->rodata->sample_every = opts->sample_every ? (__u32)opts->sample_every : 1;
	skel->rodata->only_cgroup = opts->cgroup != 0;
	skel->rodata->cgroup = opts->cgroup;
	skel->rodata->user_stacks = opts->user_stacks;
	skel->rodata->only_comm = opts->comm != NULL;
	if (opts->comm)
		strncpy((char *)(uintptr_t)skel->rodata->comm, opts->comm, KMEM_COMM - 1);
	bpf_program__set_autoload(skel->progs.percpu_alloc, opts->percpu);
	bpf_program__set_autoload(skel->progs.percpu_free, opts->percpu);
	bpf_program__set_autoload(skel->progs.free_bulk, functions);
	bpf_program__set_autoload(
		skel->progs.free_sheaf,
		functions && btf__find_by_name_kind(btf, "__kfree_rcu_sheaf", BTF_KIND_FUNC) > 0);
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

/* The table has at least twice the places that are taken, so that a block finds a free one. */
static int size_tables(struct kmem_probes *p, uint32_t max_blocks)
{
	uint32_t bits = LEAST_BITS;
	int err;

	while (1u << bits < 2 * max_blocks)
		bits++;
	p->skel->rodata->table_bits = bits;
	err = bpf_map__set_max_entries(p->skel->maps.blocks, 1u << bits);
	if (!err)
		err = bpf_map__set_max_entries(p->skel->maps.filled, (1u << bits) / KMEM_PAGE);
	if (!err && !p->skel->rodata->user_stacks)
		err = bpf_map__set_max_entries(p->skel->maps.users, 1);
	return err;
}

static int map_one(struct mapped *m, const struct bpf_map *map)
{
	size_t entry = (bpf_map__value_size(map) + 7) & ~(size_t)7;

	m->len = entry * bpf_map__max_entries(map);
	m->at = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (m->at != MAP_FAILED)
		return 0;
	m->at = NULL;
	return -errno;
}

static int map_tables(struct kmem_probes *p)
{
	int err = map_one(&p->blocks, p->skel->maps.blocks);

	if (!err)
		err = map_one(&p->filled, p->skel->maps.filled);
	if (!err)
		err = map_one(&p->rules, p->skel->maps.rules);
	if (!err && p->skel->rodata->user_stacks)
		err = map_one(&p->users, p->skel->maps.users);
	p->left = calloc(1, bpf_map__max_entries(p->skel->maps.filled));
	return err || p->left ? err : -ENOMEM;
}

static void explain_refusal(int err)
{
	if (is_locked_down())
		log_error("cannot record the kernel's memory: the kernel is locked down "
			  "(lockdown=confidentiality), so no eBPF program may read its memory");
	else
		log_error("cannot record the kernel's memory: the kernel refused the eBPF programs "
			  "(%s)%s",
			  strerror(-err),
			  err == -EPERM || err == -EACCES
				  ? "; it takes root, or CAP_BPF and CAP_PERFMON"
				  : "");
}

static int load(struct kmem_probes *p, const struct kmem_probes_opts *opts, const struct btf *btf)
{
	struct kmem_read own = {.kind = KMEM_READ_OWN};
	int err;

	p->skel = kmem_bpf__open();
	if (!p->skel)
		return -errno;
	err = kmem_forms_choose(p->skel, btf);
	if (err == -EOPNOTSUPP)
		return err;
	if (err) {
		log_error(
			"cannot record the kernel's memory: this kernel has no tracepoints for it "
			"(kmem:kmalloc and others)");
		return err;
	}
	configure(p, opts, btf);
	err = size_tables(p, opts->max_blocks);
	if (!err)
		err = kmem_bpf__load(p->skel);
	if (!err)
		err = kmem_probes_read(p, &own);
	if (!err)
		err = map_tables(p);
	if (!err)
		err = kmem_bpf__attach(p->skel);
	if (!err) {
		p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.ring), take_event, p, NULL);
		err = p->ring ? 0 : -errno;
	}
	if (err)
		explain_refusal(err);
	return err;
}

static int allocate(struct kmem_probes *p)
{
	p->cpus = libbpf_num_possible_cpus();
	if (p->cpus < 1)
		return p->cpus;
	p->counts = calloc((size_t)p->cpus * KMEM_COUNT_NR, sizeof(*p->counts));
	return p->counts ? 0 : -ENOMEM;
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

bool kmem_probes_know_proc(const struct kmem_probes *p)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
	       strtoul(self, NULL, 10) == p->skel->bss->own_tgid;
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

/* Copy the block at a place that programs write to.  False: there is none, or it just changed. */
static bool copy_block(const struct kmem_block *place, struct kmem_block *b)
{
	uint64_t addr = __atomic_load_n(&place->addr, __ATOMIC_ACQUIRE);

	if (addr <= KMEM_FILLED)
		return false;
	*b = *place;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&place->addr, __ATOMIC_RELAXED) == addr &&
	       __atomic_load_n(&place->time_ns, __ATOMIC_RELAXED) == b->time_ns;
}

int kmem_probes_each(struct kmem_probes *p, uint64_t from_ns, uint64_t until_ns,
		     int (*visit)(void *arg, const struct kmem_block *block), void *arg)
{
	const struct kmem_block *places = p->blocks.at;
	uint64_t *filled = p->filled.at; /* an entry takes 8 bytes */
	struct kmem_block b;
	int stop = 0;

	for (size_t page = 0; page < p->filled.len / sizeof(*filled) && !stop; page++) {
		if (!p->left[page] && !__atomic_load_n(&filled[page], __ATOMIC_RELAXED))
			continue;
		p->left[page] = 0;
		__atomic_exchange_n(&filled[page], 0, __ATOMIC_SEQ_CST);
		for (size_t i = page * KMEM_PAGE; i < (page + 1) * KMEM_PAGE && !stop; i++) {
			if (!copy_block(&places[i], &b))
				p->left[page] |= places[i].addr != 0;
			else if (b.time_ns >= until_ns)
				p->left[page] = 1;
			else if (b.time_ns >= from_ns)
				stop = visit(arg, &b);
		}
	}
	return stop;
}

struct kmem_user *kmem_probes_take_user(struct kmem_probes *p, uint64_t addr, uint64_t time_ns)
{
	return p->users.at ? kmem_users_take(p->users.at, &p->skel->bss->users_taken, addr, time_ns)
			   : NULL;
}

bool kmem_probes_are_crowded(const struct kmem_probes *p)
{
	return __atomic_load_n(&p->skel->bss->users_taken, __ATOMIC_RELAXED) > KMEM_USERS / 4;
}

void kmem_probes_want_samples(struct kmem_probes *p, uint32_t nr)
{
	__atomic_add_fetch(&p->skel->bss->samples_round, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&p->skel->bss->samples_wanted, (int)nr, __ATOMIC_RELAXED);
}

bool kmem_probes_rule(struct kmem_probes *p, uint64_t rule)
{
	uint64_t *rules = p->rules.at, *at = NULL;

	for (uint32_t i = 0; i <= KMEM_RULE_OTHER; i++) {
		uint64_t *one = &rules[KMEM_RULE_AT((uint32_t)rule) ^ i];

		if ((uint32_t)*one == (uint32_t)rule || (!*one && !at))
			at = one;
	}
	if (at)
		__atomic_store_n(at, rule, __ATOMIC_RELAXED);
	return at != NULL;
}

void kmem_probes_forget_stacks(struct kmem_probes *p)
{
	__atomic_fetch_add(&p->skel->bss->rules_seed, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);
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

/* How many events both of @progs did not see, at most; the second may be NULL. */
static uint64_t missed_by_both(const struct bpf_program *const progs[2])
{
	uint64_t first = missed(progs[0]), second = progs[1] ? missed(progs[1]) : first;

	return first < second ? first : second;
}

int kmem_probes_counts(const struct kmem_probes *p, uint64_t counts[KMEM_COUNT_NR],
		       uint64_t *missed_allocs, uint64_t *missed_frees)
{
	const struct bpf_program *allocs[] = {
		p->skel->progs.kmalloc,	     p->skel->progs.kmem_cache_alloc,
		p->skel->progs.kmalloc_node, p->skel->progs.kmem_cache_alloc_node,
		p->skel->progs.page_alloc,   p->skel->progs.percpu_alloc};
	/* With the second program at the same place, which sees what the first one did not. */
	const struct bpf_program *frees[][2] = {
		{p->skel->progs.kfree, p->skel->progs.kfree_again},
		{p->skel->progs.kmem_cache_free, p->skel->progs.kmem_cache_free_again},
		{p->skel->progs.page_free, p->skel->progs.page_free_again},
		{p->skel->progs.free_bulk},
		{p->skel->progs.free_sheaf},
		{p->skel->progs.percpu_free}};
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
		*missed_frees += missed_by_both(frees[i]);
	return err;
}

static void unmap_one(const struct mapped *m)
{
	if (m->at)
		munmap(m->at, m->len);
}

void kmem_probes_free(struct kmem_probes *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	unmap_one(&p->blocks);
	unmap_one(&p->filled);
	unmap_one(&p->rules);
	unmap_one(&p->users);
	kmem_bpf__destroy(p->skel);
	free(p->counts);
	free(p->left);
	free(p);
}
