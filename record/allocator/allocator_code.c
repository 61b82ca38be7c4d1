/* allocator_code.c - see allocator_code.h */
#include "record/allocator/allocator_code.h"

#include <string.h>
#include <unistd.h>

#include "record/module/elffile.h"

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
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);

	if (elf)
		elffile_functions(elf, elf, ELF_ALL, &search);
	for (int i = 0; i < 2; i++)
		if (found[i].found) {
			uint64_t at = m->start + found[i].file_offset - m->offset;

			add_range(code,
				  &(struct mlk_mapping){.start = at, .end = at + found[i].size});
		}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
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
}
