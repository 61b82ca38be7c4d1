/* thread_locals.c - see thread_locals.h */
#include "report/reach/thread_locals.h"

#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

#define SELF 16		/* bytes from the thread pointer to its second copy: tcbhead_t of glibc */
#define NEAR 3		/* words until then: one may be between them */
#define MOST (1u << 16) /* variables: others have no names */

/* Where variables are added, and of what. */
struct adding {
	struct thread_locals *to;
	const struct trace_module *image;
	uint64_t size; /* of the segment */
};

static int add_symbol(void *arg, const struct module_symbol *of)
{
	struct adding *a = arg;
	const Elf64_Sym *symbol = of->symbol;
	const struct variable new = {.start = a->to->size - symbol->st_value,
				     .end = a->to->size - symbol->st_value - symbol->st_size,
				     .name = of->name,
				     .name_len = strcspn(of->name, "@"),
				     .file = of->file,
				     .path = a->image->path};

	if (ELF64_ST_TYPE(symbol->st_info) != STT_TLS || symbol->st_shndx == SHN_UNDEF ||
	    !symbol->st_size || symbol->st_value >= a->size ||
	    symbol->st_size > a->size - symbol->st_value || a->to->nr >= MOST)
		return 0;
	return array_append(&a->to->all, &a->to->nr, &a->to->room, &new, sizeof(new));
}

static int by_end(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/* How far below the thread pointer the segment begins, where it is the first: as the loader lays it
 * out.  0: it is none that a loader would take. */
static uint64_t size_of(const Elf64_Phdr *segment)
{
	uint64_t align = segment->p_align ? segment->p_align : 1, first;

	if (align & (align - 1) || align > UINT32_MAX || segment->p_memsz > UINT32_MAX)
		return 0;
	first = -segment->p_vaddr & (align - 1);
	return ((segment->p_memsz - first + align - 1) & ~(align - 1)) + first;
}

int thread_locals_find(struct thread_locals *t, const struct root_modules *modules,
		       const struct mlk_pass *pass)
{
	struct adding a = {.to = t};
	Elf64_Phdr segment;
	size_t kept = 0;
	int err = 0;

	*t = (struct thread_locals){0};
	for (size_t i = 0; i < pass->nr_ranges && !a.image; i++)
		if (pass->ranges[i].path[0] == '/')
			a.image = module_paths_find(&modules->paths, pass->ranges[i].path);
	for (size_t i = 0; a.image && !t->size && module_segment(a.image, i, &segment); i++)
		if (segment.p_type == PT_TLS) {
			a.size = segment.p_memsz;
			t->size = size_of(&segment);
		}
	if (t->size >= a.size && a.size)
		err = module_each_symbol(a.image, add_symbol, &a);
	if (t->nr)
		qsort(t->all, t->nr, sizeof(*t->all), by_end);
	/* the same symbol may be in both tables */
	for (size_t i = 0; i < t->nr; i++)
		if (!kept || t->all[kept - 1].end != t->all[i].end)
			t->all[kept++] = t->all[i];
	t->nr = kept;
	return err;
}

int thread_locals_note(struct thread_locals *t, const struct mlk_pointer *words, size_t nr)
{
	int err = 0;

	for (size_t i = 0; t->nr && i < nr && !err; i++) {
		uint64_t at = words[i].address;

		if (words[i].value != at)
			continue;
		for (size_t k = i + 1; k < nr && k < i + NEAR && !err; k++)
			if (words[k].address == at + SELF && words[k].value == at)
				err = array_append(&t->pointers, &t->nr_pointers, &t->room_pointers,
						   &at, sizeof(at));
	}
	return err;
}

/* The lowest thread pointer above @address; 0: none. */
static uint64_t pointer_above(const struct thread_locals *t, uint64_t address)
{
	size_t low = 0, high = t->nr_pointers;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->pointers[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->nr_pointers ? t->pointers[low] : 0;
}

size_t thread_locals_at(const struct thread_locals *t, uint64_t address, uint64_t *until)
{
	uint64_t pointer = t->nr_pointers ? pointer_above(t, address) : 0;
	uint64_t below = pointer - address;
	size_t low = 0, high = t->nr;

	if (!pointer || below > t->size)
		return 0;
	/* the last one that ends before it, as addresses go down */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->all[middle].end < below)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || below > t->all[low - 1].start)
		return 0;
	*until = pointer - t->all[low - 1].end;
	return low;
}

void thread_locals_release(struct thread_locals *t)
{
	free(t->all);
	free(t->pointers);
	*t = (struct thread_locals){0};
}
