/* module_image.c - see module_image.h */
#include "report/trace/module_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE	      4096
#define MOST_SEGMENTS 256 /* that are looked at: real files have about ten */

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

	return i < MOST_SEGMENTS && module_header(image, &header) && i < header.e_phnum &&
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

/* The string at @offset of the table @strings; NULL: it does not end there. */
static const char *string_at(const struct trace_module *image, const Elf64_Shdr *strings,
			     uint64_t offset)
{
	const char *at;

	if (strings->sh_offset > image->len || strings->sh_size > image->len - strings->sh_offset ||
	    offset >= strings->sh_size)
		return NULL;
	at = (const char *)image->bytes + strings->sh_offset + offset;
	return memchr(at, '\0', strings->sh_size - offset) ? at : NULL;
}

/* Where symbols are taken from, and who takes them. */
struct symbol_table {
	const struct trace_module *image;
	Elf64_Shdr symbols, strings;
	int (*visit)(void *arg, const struct module_symbol *symbol);
	void *arg;
};

static int visit_table(const struct symbol_table *t)
{
	const char *file = NULL;
	Elf64_Sym symbol;
	int err = 0;

	for (size_t i = 0; !err && i < t->symbols.sh_size / sizeof(symbol); i++) {
		struct module_symbol of = {&symbol, NULL, NULL};

		if (!module_copy(t->image, t->symbols.sh_offset, i, sizeof(symbol), &symbol))
			break;
		of.name = string_at(t->image, &t->strings, symbol.st_name);
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FILE)
			file = of.name;
		if (!of.name || !of.name[0])
			continue;
		of.file =
			file && file[0] && ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ? file : NULL;
		err = t->visit(t->arg, &of);
	}
	return err;
}

int module_each_symbol(const struct trace_module *image,
		       int (*visit)(void *arg, const struct module_symbol *symbol), void *arg)
{
	struct symbol_table t = {.image = image, .visit = visit, .arg = arg};
	Elf64_Ehdr header;
	int err = 0;

	if (!module_header(image, &header) || header.e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	for (size_t i = 0; i < header.e_shnum && !err; i++) {
		if (!module_copy(image, header.e_shoff, i, sizeof(t.symbols), &t.symbols))
			break;
		if ((t.symbols.sh_type == SHT_SYMTAB || t.symbols.sh_type == SHT_DYNSYM) &&
		    t.symbols.sh_link < header.e_shnum &&
		    module_copy(image, header.e_shoff, t.symbols.sh_link, sizeof(t.strings),
				&t.strings))
			err = visit_table(&t);
	}
	return err;
}
