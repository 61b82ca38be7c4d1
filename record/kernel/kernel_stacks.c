/* kernel_stacks.c - see kernel_stacks.h */
#include "record/kernel/kernel_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "record/kernel/kernel_image.h"

#define NR_STACKS   (KMEM_STACKS + KMEM_SPARE)
#define OWN_FRAMES  8  /* the frames of the programs are among so many */
#define ENTRIES	    64 /* functions by which user space enters the kernel, at most */
#define ENTRY_SIZE  16 /* bytes that each of them has in the trace */
#define SLAB_FRAMES 8  /* and those of the slab allocator among so many behind them */

struct kernel_stacks {
	const struct kmem_probes *probes;
	const struct kallsyms *names;
	struct kernel_stack *all; /* by number */
	struct kernel_stack none;
	bool *used;				/* by index in names->v: a function that occurred */
	const struct kallsym *entries[ENTRIES]; /* by which the kernel was entered */
	size_t nr_entries;
	bool has_entries; /* they are asked for */
	uint64_t unnamed; /* addresses that lie in no function */
};

/* Of the programs themselves, which come first, and how the kernel calls them. */
static const char *const own[] = {"bpf_prog_",	  "bpf_trace_run",  "__bpf_trace_",
				  "__traceiter_", "bpf_trampoline", "bpf_get_stackid"};

/* Code that kallsyms lists as modules, and that lies among theirs. */
static const char *const generated[] = {"bpf", "__builtin__"};

/* They allocate pages for objects that are told as well. */
static const char *const slab[] = {
	"allocate_slab",	 "new_slab",	  "alloc_slab_page",	"__kmalloc_large_node",
	"___kmalloc_large_node", "kmalloc_large", "kmalloc_large_node", "kmalloc_order",
	"pcpu_populate_chunk"};

/* What they interrupted did not call them: a stack ends here. */
static const char *const interrupt[] = {"handle_softirqs",	"__do_softirq",
					"asm_common_interrupt", "asm_sysvec_",
					"common_interrupt",	"asm_exc_nmi"};

/* User space called these, or was interrupted by its own doing.  The forms for programs of 32 bits
 * have other registers. */
static const char *const entered[] = {"entry_SYSCALL_64", "asm_exc_", "ret_from_fork"};

/* A program is being replaced: registers are of the old one, memory is of the new one. */
static const char *const replaced[] = {"bprm_execve", "load_elf_binary", "begin_new_exec"};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Does @name begin with one of @list? */
static bool begins(const char *name, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

/* Is @name one of @list, or what the compiler made of it, as allocate_slab.isra.0? */
static bool is_one(const char *name, const char *const *list, size_t nr)
{
	size_t len = strcspn(name, ".");

	for (size_t i = 0; i < nr; i++)
		if (strlen(list[i]) == len && !strncmp(name, list[i], len))
			return true;
	return false;
}

/* The name of the function that is called from where @pc returns to, "" when there is none. */
static const char *name_at(const struct kernel_stacks *s, uint64_t pc)
{
	const struct kallsym *f = kallsyms_find(s->names, pc - 1);

	return f ? kallsyms_name(s->names, f) : "";
}

/* How many of the first frames are those of the programs. */
static size_t skip_own(const struct kernel_stacks *s, const uint64_t *pcs, size_t nr)
{
	size_t skip = 0;

	for (size_t i = 0; i < nr && i < OWN_FRAMES; i++)
		if (begins(name_at(s, pcs[i]), own, NR(own)))
			skip = i + 1;
	return skip;
}

static bool is_generated(const struct kernel_stacks *s, size_t module)
{
	return module != KALLSYMS_KERNEL &&
	       begins(s->names->modules[module].name, generated, NR(generated));
}

static uint64_t as_linked(const struct kernel_stacks *s, uint64_t pc)
{
	const struct kallsyms_module *kernel = &s->names->modules[KALLSYMS_KERNEL];

	return pc >= s->names->text && pc < kernel->end ? pc - s->names->text + KERNEL_STACKS_TEXT
							: pc;
}

/* The address that stands for @f, by which the kernel was entered; 0: it was not, or by too many.
 */
static uint64_t entry_for(struct kernel_stacks *s, const struct kallsym *f)
{
	size_t at = 0;

	if (!begins(kallsyms_name(s->names, f), entered, NR(entered)))
		return 0;
	while (at < s->nr_entries && s->entries[at] != f)
		at++;
	if (at == ENTRIES)
		return 0;
	if (at == s->nr_entries)
		s->entries[s->nr_entries++] = f;
	return KERNEL_STACKS_ENTRY + at * ENTRY_SIZE + ENTRY_SIZE / 2;
}

static void read_stack(struct kernel_stacks *s, uint32_t number, struct kernel_stack *stack)
{
	const struct kallsym *last = NULL;
	bool is_replaced = false;
	uint64_t pcs[KMEM_STACK_DEPTH];
	size_t nr = kmem_probes_stack(s->probes, number, pcs), skip = skip_own(s, pcs, nr);

	*stack = (struct kernel_stack){.known = nr > 0};
	if (nr == KMEM_STACK_DEPTH)
		stack->what |= KERNEL_STACK_CUT;
	for (size_t i = skip; i < nr; i++) {
		const struct kallsym *f = kallsyms_find(s->names, pcs[i] - 1);
		const char *name = f ? kallsyms_name(s->names, f) : "";

		/* Programs of others are left out, because they are no module. */
		if (!f || is_generated(s, f->module)) {
			s->unnamed += !f;
			continue;
		}
		s->used[f - s->names->v] = true;
		if (i < skip + SLAB_FRAMES && is_one(name, slab, NR(slab)))
			stack->what |= KERNEL_STACK_SLAB;
		is_replaced |= is_one(name, replaced, NR(replaced));
		last = f;
		stack->pcs[stack->nr++] = as_linked(s, pcs[i]);
		if (begins(name, interrupt, NR(interrupt))) {
			stack->what |= KERNEL_STACK_INTERRUPT;
			stack->what &= (uint8_t)~KERNEL_STACK_CUT;
			return;
		}
	}
	if (s->has_entries && last && !is_replaced && !(stack->what & KERNEL_STACK_CUT))
		stack->entry = entry_for(s, last);
}

int kernel_stacks_new(struct kernel_stacks **out, const struct kmem_probes *probes,
		      const struct kallsyms *names, bool entries)
{
	struct kernel_stacks *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->probes = probes;
	s->names = names;
	s->has_entries = entries;
	s->all = calloc(NR_STACKS, sizeof(*s->all));
	s->used = calloc(names->nr, sizeof(*s->used));
	if (!s->all || !s->used) {
		kernel_stacks_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

const struct kernel_stack *kernel_stacks_get(struct kernel_stacks *s, uint32_t number)
{
	if (number >= NR_STACKS)
		return &s->none;
	if (!s->all[number].known)
		read_stack(s, number, &s->all[number]);
	return &s->all[number];
}

size_t kernel_stacks_pcs(const struct kernel_stacks *s, uint32_t number,
			 enum kernel_stacks_from from, uint64_t pcs[KMEM_STACK_DEPTH])
{
	size_t nr = kmem_probes_stack(s->probes, number, pcs), skip = 0;

	if (from == KERNEL_STACKS_CALLERS)
		skip = skip_own(s, pcs, nr);
	else
		while (skip < nr && begins(name_at(s, pcs[skip]), own, 1))
			skip++;
	memmove(pcs, pcs + skip, (nr - skip) * sizeof(*pcs));
	return nr - skip;
}

/* What identifies a module without a build-id: its name and the kernel's version. */
static void name_as_id(const char *name, struct mlk_id *id)
{
	struct utsname u;
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	char text[256];

	uname(&u);
	snprintf(text, sizeof(text), "%s %s %s", name, u.release, u.version);
	memset(id, 0, sizeof(*id));
	id->len = MLK_MAX_ID;
	id->bytes[0] = MLK_ID_FILE;
	for (size_t i = 0; text[i]; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3;
	memcpy(id->bytes + 1, &hash, sizeof(hash));
}

static void find_id(const char *module, enum kernel_stacks_names names, struct mlk_id *id)
{
	char path[160];

	snprintf(path, sizeof(path),
		 module[0] ? "/sys/module/%s/notes/.note.gnu.build-id" : "/sys/kernel/notes%s",
		 module);
	kernel_image_build_id(path, id);
	if (!id->len)
		name_as_id(module, id);
	/* An image without names is another one. */
	if (names == KERNEL_STACKS_NO_NAMES)
		id->bytes[0] = MLK_ID_FILE;
}

/* Where a module's image begins: the kernel's where it was linked to, the others' at 0. */
static uint64_t image_start(size_t module)
{
	return module == KALLSYMS_KERNEL ? KERNEL_STACKS_TEXT : 0;
}

/* List the functions of @module that occurred, or @all, to @list.  Returns how many. */
static size_t list_functions(const struct kernel_stacks *s, uint32_t module,
			     struct kernel_function *list, bool all)
{
	const struct kallsyms *names = s->names;
	uint64_t start = names->modules[module].start;
	size_t nr = 0;

	if (module == KALLSYMS_KERNEL)
		start = names->text;
	for (size_t i = 0; i < names->nr; i++) {
		uint64_t end = names->modules[module].end;

		if ((!all && !s->used[i]) || names->v[i].module != module)
			continue;
		for (size_t next = i + 1; next < names->nr; next++)
			if (names->v[next].addr > names->v[i].addr) {
				end = names->v[next].addr < end ? names->v[next].addr : end;
				break;
			}
		list[nr++] = (struct kernel_function){.addr = names->v[i].addr - start +
							      image_start(module),
						      .size = end - names->v[i].addr,
						      .name = kallsyms_name(names, &names->v[i])};
	}
	return nr;
}

static int write_module(const struct kernel_stacks *s, struct mlk_writer *w, uint32_t module,
			const struct mlk_mapping *m, struct kernel_function *list,
			enum kernel_stacks_names names)
{
	struct kernel_image what = {
		.start = image_start(module),
		.end = image_start(module) + (m->end - m->start),
		.id = m->id,
		.functions = list,
		.nr = names == KERNEL_STACKS_NO_NAMES
			      ? 0
			      : list_functions(s, module, list, names == KERNEL_STACKS_ALL)};
	uint8_t *bytes;
	size_t len;
	int err;

	/* The note has the build-id even where the trace calls the image by another. */
	find_id(module == KALLSYMS_KERNEL ? "" : s->names->modules[module].name, KERNEL_STACKS_USED,
		&what.id);
	err = kernel_image_make(&what, &bytes, &len);

	if (!err)
		err = mlk_writer_module(w, &m->id, m->path, bytes, len);
	free(bytes);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct mlk_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void describe(const struct kernel_stacks *s, size_t module, enum kernel_stacks_names names,
		     char *path, struct mlk_mapping *m)
{
	const struct kallsyms_module *of = &s->names->modules[module];

	snprintf(path, 80, "[%s]", module == KALLSYMS_KERNEL ? "kernel" : of->name);
	*m = (struct mlk_mapping){
		.start = of->start, .end = of->end, .perms = MLK_PERM_R | MLK_PERM_X, .path = path};
	if (module == KALLSYMS_KERNEL) {
		m->start = KERNEL_STACKS_TEXT;
		m->end = of->end - s->names->text + KERNEL_STACKS_TEXT;
	}
	find_id(module == KALLSYMS_KERNEL ? "" : of->name, names, &m->id);
}

/* The code by which the kernel was entered, as a module. */
static int write_entries(const struct kernel_stacks *s, struct mlk_writer *w, struct mlk_mapping *m,
			 bool names)
{
	struct kernel_function list[ENTRIES];
	struct kernel_image what = {.start = KERNEL_STACKS_ENTRY,
				    .end = KERNEL_STACKS_ENTRY + ENTRIES * ENTRY_SIZE,
				    .has_regs = true,
				    .functions = list,
				    .nr = names ? s->nr_entries : 0};
	char text[200] = "[entry]";
	uint8_t *bytes;
	size_t len;
	int err;

	*m = (struct mlk_mapping){.start = what.start,
				  .end = what.end,
				  .perms = MLK_PERM_R | MLK_PERM_X,
				  .path = "[entry]"};
	for (size_t i = 0; i < what.nr; i++) {
		list[i] = (struct kernel_function){.addr = what.start + i * ENTRY_SIZE,
						   .size = ENTRY_SIZE,
						   .name = kallsyms_name(s->names, s->entries[i])};
		/* Which function is where differs from trace to trace, so the id does. */
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", list[i].name);
	}
	name_as_id(text, &m->id);
	err = kernel_image_make(&what, &bytes, &len);
	if (!err)
		err = mlk_writer_module(w, &m->id, m->path, bytes, len);
	free(bytes);
	return err;
}

int kernel_stacks_write(const struct kernel_stacks *s, struct mlk_writer *w,
			enum kernel_stacks_names names, uint64_t time_ns)
{
	size_t nr = s->names->nr_modules;
	struct mlk_mapping *v = calloc(nr + 1, sizeof(*v));
	struct kernel_function *list = calloc(s->names->nr, sizeof(*list));
	char(*paths)[80] = calloc(nr, sizeof(*paths));
	struct mlk_maps maps = {.time_ns = time_ns, .mappings = v};
	int err = v && list && paths ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < nr; i++) {
		if (is_generated(s, i))
			continue;
		describe(s, i, names, paths[i], &v[maps.nr]);
		err = write_module(s, w, (uint32_t)i, &v[maps.nr++], list, names);
	}
	if (!err && s->has_entries)
		err = write_entries(s, w, &v[maps.nr++], names);
	if (!err) {
		qsort(v, maps.nr, sizeof(*v), by_start);
		err = mlk_writer_maps(w, &maps);
	}
	free(v);
	free(list);
	free(paths);
	return err;
}

uint64_t kernel_stacks_unnamed(const struct kernel_stacks *s)
{
	return s->unnamed;
}

void kernel_stacks_free(struct kernel_stacks *s)
{
	if (!s)
		return;
	free(s->all);
	free(s->used);
	free(s);
}
