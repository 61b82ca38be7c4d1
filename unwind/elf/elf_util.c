/* elf_util.c - see elf_util.h */
#include "unwind/elf/elf_util.h"

#include <string.h>

Elf_Scn *dwunw_elf_section(Elf *elf, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const char *own;

		if (!gelf_getshdr(scn, shdr) || shdr->sh_type == SHT_NOBITS)
			continue;
		own = elf_strptr(elf, names, shdr->sh_name);
		if (own && !strcmp(own, name))
			return scn;
	}
	return NULL;
}

bool dwunw_elf_has_debug_info(Elf *elf)
{
	GElf_Shdr shdr;

	return dwunw_elf_section(elf, ".debug_info", &shdr) ||
	       dwunw_elf_section(elf, ".zdebug_info", &shdr);
}

static bool find_in_notes(Elf_Data *data, struct dwunw_build_id *id)
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = data->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(bytes + name, "GNU", sizeof("GNU")) || !note.n_descsz ||
		    note.n_descsz > sizeof(id->bytes))
			continue;
		id->len = note.n_descsz;
		memcpy(id->bytes, bytes + desc, id->len);
		return true;
	}
	return false;
}

void dwunw_elf_build_id(Elf *elf, struct dwunw_build_id *id)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	/* By sections: in a reduced image the program headers tell where the notes once were. */
	memset(id, 0, sizeof(*id));
	while ((scn = elf_nextscn(elf, scn)) != NULL)
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE &&
		    find_in_notes(elf_getdata(scn, NULL), id))
			return;
}

bool dwunw_build_id_equal(const struct dwunw_build_id *a, const struct dwunw_build_id *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}
