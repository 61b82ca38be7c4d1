/* kmem_forms.c - see kmem_forms.h */
#include "record/kernel/kmem_forms.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "kmem.bpf.skel.h"
#include "mleak.h"

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

/* include/trace/events/kmem.h from 5.15 on. */
int kmem_forms_choose(struct kmem_bpf *skel, const struct btf *btf)
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

bool kmem_forms_take_functions(const struct btf *btf)
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
