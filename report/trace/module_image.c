/* module_image.c - see module_image.h */
#include "report/trace/module_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

static int compare_paths(const void *a, const void *b)
{
	const struct trace_module *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

int module_paths_init(struct module_paths *paths, const struct trace_modules *images)
{
	*paths = (struct module_paths){calloc(images->nr + 1, sizeof(struct trace_module *)), 0};
	if (!paths->all)
		return -ENOMEM;
	for (size_t i = 0; i < images->nr; i++)
		if (images->all[i].whole && !images->all[i].broken)
			paths->all[paths->nr++] = &images->all[i];
	qsort(paths->all, paths->nr, sizeof(*paths->all), compare_paths);
	return 0;
}

const struct trace_module *module_paths_find(const struct module_paths *paths, const char *path)
{
	size_t low = 0, high = paths->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(paths->all[middle]->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < paths->nr && !strcmp(paths->all[low]->path, path) ? paths->all[low] : NULL;
}

void module_paths_release(struct module_paths *paths)
{
	free(paths->all);
	*paths = (struct module_paths){0};
}

bool module_copy(const struct trace_module *image, uint64_t offset, size_t i, size_t size, void *to)
{
	if (offset > image->len || i >= (image->len - offset) / size)
		return false;
	memcpy(to, image->bytes + offset + i * size, size);
	return true;
}

bool module_header(const struct trace_module *image, Elf64_Ehdr *header)
{
	return module_copy(image, 0, 0, sizeof(*header), header) &&
	       !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_phentsize == sizeof(Elf64_Phdr);
}

bool module_segment(const struct trace_module *image, size_t i, Elf64_Phdr *segment)
{
	Elf64_Ehdr header;

	return module_header(image, &header) && i < header.e_phnum &&
	       module_copy(image, header.e_phoff, i, sizeof(*segment), segment);
}

static uint64_t page_up(uint64_t address)
{
	return (address + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

uint64_t module_zeroed(const struct trace_module *image)
{
	uint64_t zeroed = 0, last = 0;
	Elf64_Phdr segment;

	for (size_t i = 0; module_segment(image, i, &segment); i++) {
		uint64_t file = page_up(segment.p_vaddr + segment.p_filesz);
		uint64_t all = page_up(segment.p_vaddr + segment.p_memsz);

		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W) ||
		    segment.p_vaddr < last)
			continue;
		last = segment.p_vaddr;
		zeroed = all > file ? all - file : 0;
	}
	return zeroed;
}
