/* elffile.c - symbols, segments and notes through libelf */
#include "record/module/elffile.h"

#include <gelf.h>
#include <string.h>

Elf *elffile_open(int fd)
{
	Elf *elf;
	GElf_Ehdr ehdr;

	elf_version(EV_CURRENT);
	/* Read, not mapped: a library that is overwritten in place meanwhile must not kill us. */
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	    ehdr.e_machine == EM_X86_64 && gelf_getclass(elf) == ELFCLASS64)
		return elf;
	elf_end(elf);
	return NULL;
}

/* File offset of the address @vaddr, and how many bytes the file holds from there on; false when no
 * segment holds it. */
static bool find_offset(Elf *elf, uint64_t vaddr, uint64_t *offset, uint64_t *left)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (vaddr >= ph.p_vaddr && vaddr - ph.p_vaddr < ph.p_filesz) {
			*offset = vaddr - ph.p_vaddr + ph.p_offset;
			*left = ph.p_filesz - (vaddr - ph.p_vaddr);
			return true;
		}
	}
	return false;
}

static bool file_offset(Elf *elf, uint64_t vaddr, uint64_t *offset)
{
	uint64_t left;

	return find_offset(elf, vaddr, offset, &left);
}

const void *elffile_bytes(Elf *elf, uint64_t vaddr, size_t most, size_t *len)
{
	uint64_t offset, left;
	Elf_Data *data;

	if (!find_offset(elf, vaddr, &offset, &left) || offset > INT64_MAX)
		return NULL;
	*len = left < most ? (size_t)left : most;
	data = elf_getdata_rawchunk(elf, (int64_t)offset, *len, ELF_T_BYTE);
	return data ? data->d_buf : NULL;
}

/* Note the symbol @sym, a function named @name, if it is looked for. */
static void match(Elf *elf, const GElf_Sym *sym, const char *name, const struct elf_names *names)
{
	struct elf_function *found = names->found;

	for (size_t i = 0; i < names->nr; i++) {
		if (found[i].found || strcmp(name, names->all[i]))
			continue;
		found[i].address = sym->st_value;
		found[i].size = sym->st_size;
		found[i].found = file_offset(elf, sym->st_value, &found[i].file_offset);
	}
}

void elffile_functions(Elf *elf, Elf *symbols, enum elf_table table, const struct elf_names *names)
{
	const GElf_Word type = table == ELF_EXPORTED ? SHT_DYNSYM : SHT_SYMTAB;
	bool first[256] = {false};
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;

	for (size_t i = 0; i < names->nr; i++)
		first[(unsigned char)names->all[i][0]] = true;
	while ((scn = elf_nextscn(symbols, scn)) != NULL) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type || !sh.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *s;

			if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF)
				continue;
			s = elf_strptr(symbols, sh.sh_link, sym.st_name);
			if (s && first[(unsigned char)s[0]])
				match(elf, &sym, s, names);
		}
	}
}

bool elffile_has_loader(Elf *elf)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_INTERP)
			return true;
	return false;
}

bool elffile_code(Elf *elf, uint64_t offset, uint64_t *start, uint64_t *len)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		if (offset >= ph.p_offset && offset - ph.p_offset < ph.p_filesz) {
			*start = ph.p_offset;
			*len = ph.p_filesz;
			return true;
		}
	}
	return false;
}

uint64_t elffile_bias(Elf *elf, uint64_t offset)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X &&
		    offset >= ph.p_offset && offset - ph.p_offset < ph.p_filesz)
			return ph.p_vaddr - ph.p_offset;
	return 0;
}

Elf_Scn *elffile_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t strings;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const char *s =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, strings, sh.sh_name) : NULL;

		if (s && !strcmp(s, name))
			return scn;
	}
	return NULL;
}

/* Look for the build-id among the notes in @data. */
static bool build_id_in(Elf_Data *data, struct mlk_id *id)
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp((char *)data->d_buf + name, "GNU", 4) || !note.n_descsz ||
		    note.n_descsz > MLK_MAX_ID - 1)
			continue;
		id->len = (uint8_t)(note.n_descsz + 1);
		id->bytes[0] = MLK_ID_BUILD_ID;
		memcpy(id->bytes + 1, (char *)data->d_buf + desc, note.n_descsz);
		return true;
	}
	return false;
}

void elffile_build_id(Elf *elf, struct mlk_id *id)
{
	size_t n;
	GElf_Phdr ph;

	memset(id, 0, sizeof(*id));
	if (elf_getphdrnum(elf, &n))
		return;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_NOTE &&
		    build_id_in(elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
						     ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
				id))
			return;
}
