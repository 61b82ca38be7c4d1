/* allocators.c - sets of probed objects: compared, copied, released, told to the BPF programs */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/allocator/allocator.h"
#include "record/golang/go_program.h"
#include "record/module/module_table.h"
#include "record/target/link_map.h"

/* tikv-jemallocator, mimalloc and others are built into a program. */
const char *const allocator_names[ALLOCATOR_NAMES] = {"malloc",	   "dlmalloc",	"_rjem_malloc",
						      "je_malloc", "mi_malloc", "rpmalloc",
						      "sn_malloc", "tc_malloc", "scalable_malloc"};

bool alloc_object_same(const struct alloc_object *a, const struct alloc_object *b)
{
	if (!maps_same_file(&a->code, &b->code) || a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (a->sites[i].function != b->sites[i].function ||
		    a->sites[i].by_ret != b->sites[i].by_ret)
			return false;
	return true;
}

bool allocators_probe_file(const struct allocators *a, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < a->nr; i++)
		if (maps_same_file(&a->v[i].code, m))
			return true;
	return false;
}

/* Has @a an object like @o? */
static bool has_object(const struct allocators *a, const struct alloc_object *o)
{
	for (size_t i = 0; i < a->nr; i++)
		if (maps_same_file(&a->v[i].code, &o->code))
			return alloc_object_same(&a->v[i], o);
	return false;
}

bool allocators_same(const struct allocators *a, const struct allocators *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (!has_object(b, &a->v[i]))
			return false;
	return true;
}

int allocators_copy(struct allocators *to, const struct allocators *from)
{
	int err = 0;

	*to = *from;
	for (size_t i = 0; i < to->nr; i++) {
		struct alloc_object *o = &to->v[i];

		o->path = strdup(from->v[i].path);
		o->code.path = o->path;
		o->fd = fcntl(from->v[i].fd, F_DUPFD_CLOEXEC, 0);
		if (!o->path)
			err = -ENOMEM;
		else if (o->fd < 0)
			err = -errno;
	}
	return err;
}

void allocators_release(struct allocators *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		if (a->v[i].fd >= 0)
			close(a->v[i].fd);
		free(a->v[i].path);
	}
	a->nr = 0;
}

static void add_range(struct event_code *code, const struct mlk_mapping *m)
{
	size_t i = 0;

	while (i < EVENT_MAX_CODE && code->libraries[i].size &&
	       code->libraries[i].start != m->start)
		i++;
	if (i < EVENT_MAX_CODE)
		code->libraries[i] = (struct event_code_range){m->start, m->end - m->start};
}

/* In a statically linked program the code that maps threads' stacks is known by its name. */
static void add_thread_start(struct event_code *code, const struct target *t,
			     const struct mlk_mapping *m)
{
	static const char *const names[] = {"pthread_create", "__pthread_create"};
	struct elf_function found[2] = {0};
	const struct elf_names search = {names, 2, found};

	module_functions(t, m, ELF_ALL, &search);
	for (int i = 0; i < 2; i++)
		if (found[i].found) {
			uint64_t at = m->start + found[i].file_offset - m->offset;

			add_range(code,
				  &(struct mlk_mapping){.start = at, .end = at + found[i].size});
		}
}

/* Go's runtime maps memory for itself, as an allocator does. */
static void add_golang(struct event_code *code, const struct target *t,
		       const struct mlk_mapping *program)
{
	struct go_program go = {0};

	go_program_know(&go, t, program);
	code->go = go.capture;
	if (go.capture.mapped)
		add_range(code, &(struct mlk_mapping){.start = go.capture.mapped,
						      .end = go.capture.mapped + 1});
}

void allocators_set_code(struct allocators *a, const struct target *t,
			 const struct loaded_objects *objects, bool is_static)
{
	memset(&a->code, 0, sizeof(a->code));
	a->code.is_static = is_static;
	for (size_t i = 0; i < a->nr; i++) {
		const struct mlk_mapping *m = &a->v[i].code;

		if (a->v[i].is_program)
			a->code.program = (struct event_code_range){m->start, m->end - m->start};
		else
			add_range(&a->code, m);
	}
	for (size_t i = 0; i < objects->nr; i++)
		if (target_is_libc(objects->v[i]->path))
			add_range(&a->code, objects->v[i]);
	if (objects->loader)
		add_range(&a->code, objects->loader);
	if (is_static)
		add_thread_start(&a->code, t, objects->program);
	if (objects->program)
		add_golang(&a->code, t, objects->program);
}
