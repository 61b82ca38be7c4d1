/* module.c - see module.h */
#include "unwind/module/module.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/dwunw.h"
#include "unwind/elf/elf_util.h"

#define PAGE 4096u

static int check_header(Elf *elf)
{
	GElf_Ehdr ehdr;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		return DWUNW_ERR_ELF;
	if (ehdr.e_machine != EM_X86_64 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB)
		return DWUNW_ERR_ARCH;
	return ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN ? 0 : DWUNW_ERR_ELF;
}

int dwunw_module_new(struct dwunw_module **out, const char *path, const void *image,
		     size_t image_len)
{
	struct dwunw_module *module = NULL;
	int err = -ENOMEM;

	*out = NULL;
	elf_version(EV_CURRENT);
	module = calloc(1, sizeof(*module));
	if (!module)
		goto out;
	module->path = strdup(path);
	if (!module->path)
		goto out;
	/* libelf wants char *, but writes nothing to what it opens for reading. */
	module->elf = image_len ? elf_memory((char *)(uintptr_t)image, image_len) : NULL;
	err = check_header(module->elf);
	if (err)
		goto out;
	dwunw_elf_build_id(module->elf, &module->id);
	module->cfi = dwunw_cfi_new(module->elf);
	if (!module->cfi) {
		err = -ENOMEM;
		goto out;
	}
	*out = module;
	module = NULL;
out:
	dwunw_module_free(module);
	return err;
}

int dwunw_module_map(struct dwunw_module **out, const char *file, const char *path,
		     const struct dwunw_build_id *id)
{
	size_t len = 0;
	void *image;
	int fd, err;

	*out = NULL;
	fd = dwunw_file_open(file, &len);
	if (fd < 0)
		return -ENOENT;
	image = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (image == MAP_FAILED)
		return -ENOMEM;
	err = dwunw_module_new(out, path, image, len);
	if (err) {
		munmap(image, len);
		return err;
	}
	(*out)->mapped = image;
	(*out)->mapped_len = len;
	if (dwunw_build_id_equal(&(*out)->id, id))
		return 0;
	dwunw_module_free(*out);
	*out = NULL;
	return -ENOENT;
}

void dwunw_module_free(struct dwunw_module *module)
{
	if (!module)
		return;
	dwunw_names_free(module->names);
	dwunw_cfi_free(module->cfi);
	elf_end(module->elf);
	if (module->mapped)
		munmap(module->mapped, module->mapped_len);
	free(module->debug_file);
	free(module->path);
	free(module);
}

/* How well a segment explains a mapping: 0 not at all.  Pages on the border of two segments are in
 * the file once, but in memory twice; the one that begins there is meant. */
static int rate(const GElf_Phdr *ph, uint64_t file_offset)
{
	uint64_t first = ph->p_offset & ~(uint64_t)(PAGE - 1);

	if (ph->p_type != PT_LOAD || file_offset < first ||
	    file_offset - first >= ph->p_filesz + (ph->p_offset - first))
		return 0;
	return 1 + (file_offset == first) + 2 * !!(ph->p_flags & PF_X);
}

/* Of a file that has debug information only, the segments are not in it, and where they were in the
 * program's file is mostly forgotten.  But a program has one segment with code, and where a mapping
 * is just as long as that, it is that. */
static bool is_mapped_whole(const GElf_Phdr *ph, const struct dwunw_mapping *map)
{
	uint64_t first = ph->p_vaddr & ~(uint64_t)(PAGE - 1);

	return ph->p_type == PT_LOAD && ph->p_flags & PF_X && !ph->p_filesz &&
	       map->end - map->start ==
		       ((ph->p_vaddr - first + ph->p_memsz + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

bool dwunw_module_bias(const struct dwunw_module *module, const struct dwunw_mapping *map,
		       uint64_t *bias)
{
	GElf_Phdr ph;
	size_t nr = 0;
	int best = 0;

	if (elf_getphdrnum(module->elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(module->elf, (int)i, &ph); i++) {
		if (!best && is_mapped_whole(&ph, map)) {
			*bias = map->start - (ph.p_vaddr & ~(uint64_t)(PAGE - 1));
			return true;
		}
		if (rate(&ph, map->file_offset) <= best)
			continue;
		best = rate(&ph, map->file_offset);
		*bias = map->start - map->file_offset + ph.p_offset - ph.p_vaddr;
	}
	return best > 0;
}
