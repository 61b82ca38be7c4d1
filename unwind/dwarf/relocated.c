/* relocated.c - see relocated.h: libdwfl lays the sections out, and applies their relocations */
#include "unwind/dwarf/relocated.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dwunw_relocated {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf *dwarf;
	uint64_t bias; /* what is added to an address of the Dwarf to have that of a symbol */
};

/* There is one file, and no other is opened: not the one that a link in it names, either. */
static int find_nothing(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc;
	*found = NULL;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_debuginfo = find_nothing,
	.section_address = dwfl_offline_section_address,
};

/* Returns 0, -ENOMEM or -EINVAL. */
static int open_file(struct dwunw_relocated *file, int fd)
{
	Dwarf_Addr bias = 0;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0)
		return -ENOMEM;
	file->dwfl = dwfl_begin(&callbacks);
	if (file->dwfl)
		file->module = dwfl_report_offline(file->dwfl, "", "", own);
	if (!file->module) {
		close(own);
		return file->dwfl ? -EINVAL : -ENOMEM;
	}
	dwfl_report_end(file->dwfl, NULL, NULL);
	file->dwarf = dwfl_module_getdwarf(file->module, &bias);
	file->bias = bias;
	return file->dwarf && dwfl_module_getsymtab(file->module) > 0 ? 0 : -EINVAL;
}

int dwunw_relocated_new(struct dwunw_relocated **out, int fd)
{
	struct dwunw_relocated *file = calloc(1, sizeof(*file));
	int err = file ? open_file(file, fd) : -ENOMEM;

	if (err) {
		dwunw_relocated_free(file);
		file = NULL;
	}
	*out = file;
	return err;
}

Dwarf *dwunw_relocated_dwarf(const struct dwunw_relocated *file)
{
	return file->dwarf;
}

bool dwunw_relocated_find(const struct dwunw_relocated *file, const char *name, size_t len,
			  uint64_t *addr)
{
	int nr = dwfl_module_getsymtab(file->module), found = 0;

	for (int i = 0; i < nr && found < 2; i++) {
		GElf_Sym sym;
		GElf_Addr at;
		const char *own =
			dwfl_module_getsym_info(file->module, i, &sym, &at, NULL, NULL, NULL);

		if (!own || GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
		    strncmp(own, name, len) != 0 || own[len])
			continue;
		found++;
		*addr = at - file->bias;
	}
	return found == 1;
}

void dwunw_relocated_free(struct dwunw_relocated *file)
{
	if (!file)
		return;
	if (file->dwfl)
		dwfl_end(file->dwfl);
	free(file);
}
