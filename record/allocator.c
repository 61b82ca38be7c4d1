/* allocator.c - from function names to probe sites */
#include "record/allocator.h"

#include <errno.h>
#include <string.h>

#include "bpf/event.h"
#include "mleak.h"
#include "record/elffile.h"
#include "record/probe_site.h"

static const struct wanted {
	const char *name;
	uint32_t func;
	bool required;
} wanted[] = {
	{"malloc", FUNC_MALLOC, true},
	{"calloc", FUNC_CALLOC, false},
	{"realloc", FUNC_REALLOC, false},
	{"posix_memalign", FUNC_POSIX_MEMALIGN, false},
	{"aligned_alloc", FUNC_ALIGNED_ALLOC, false},
	{"memalign", FUNC_MEMALIGN, false},
	{"valloc", FUNC_VALLOC, false},
	{"pvalloc", FUNC_PVALLOC, false},
	{"free", 0, true},
};

_Static_assert(sizeof(wanted) / sizeof(wanted[0]) <= ALLOCATOR_MAX_SITES, "room for all");

/* Add the site of @w, whose function is @f; nothing when its code cannot be read. */
static void add_site(struct allocator *a, Elf *elf, const struct wanted *w,
		     const struct elf_function *f)
{
	struct alloc_site *site = &a->sites[a->nr];
	struct probe_site best = {0};
	uint64_t start, len;
	Elf_Data *code;

	if (!elffile_code(elf, f->file_offset, &start, &len))
		return;
	code = elf_getdata_rawchunk(elf, (int64_t)start, (size_t)len, ELF_T_BYTE);
	if (code)
		best = probe_site_find(code->d_buf, code->d_size, (size_t)(f->file_offset - start),
				       (size_t)f->size);
	/* Two names of one function (glibc's aligned_alloc is memalign) need one probe. */
	for (size_t i = 0; i < a->nr; i++)
		if (a->sites[i].file_offset == f->file_offset + best.offset)
			return;
	site->name = w->name;
	site->func = w->func;
	site->file_offset = f->file_offset + best.offset;
	site->emulated = best.emulated;
	a->nr++;
}

int allocator_find(struct allocator *a, int fd, const char *path)
{
	Elf *elf = elffile_open(fd);
	int err = 0;

	memset(a, 0, sizeof(*a));
	if (!elf) {
		log_error(
			"cannot probe '%s': it is no 64-bit x86-64 ELF file, and mleak records no "
			"others yet",
			path);
		return -ENOEXEC;
	}
	for (size_t i = 0; !err && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct elf_function f;
		size_t before = a->nr;

		if (elffile_function(elf, wanted[i].name, &f))
			add_site(a, elf, &wanted[i], &f);
		if (a->nr == before && wanted[i].required) {
			log_error("cannot probe '%s': it does not define %s", path, wanted[i].name);
			err = -ENOENT;
		}
	}
	elf_end(elf);
	return err;
}
