/* elffile.c - symbols, segments and notes through libelf */
#include "record/module/elffile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The next program header of @type, from the @i-th on, and @i is behind it.  False: there is none.
 */
static bool next_phdr(Elf *elf, GElf_Word type, size_t *i, GElf_Phdr *ph)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	while (*i < n)
		if (gelf_getphdr(elf, (int)(*i)++, ph) && ph->p_type == type)
			return true;
	return false;
}

/* File offset of the address @vaddr, and how many bytes the file holds from there on; false when no
 * segment holds it. */
static bool find_offset(Elf *elf, uint64_t vaddr, uint64_t *offset, uint64_t *left)
{
	GElf_Phdr ph;

	for (size_t i = 0; next_phdr(elf, PT_LOAD, &i, &ph);)
		if (vaddr >= ph.p_vaddr && vaddr - ph.p_vaddr < ph.p_filesz) {
			*offset = vaddr - ph.p_vaddr + ph.p_offset;
			*left = ph.p_filesz - (vaddr - ph.p_vaddr);
			return true;
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

bool elffile_next_symbol(struct elf_symbols *s)
{
	for (;;) {
		if (s->data && gelf_getsym(s->data, s->next++, &s->sym))
			return true;
		s->next = 0;
		s->data = NULL;
		s->scn = elf_nextscn(s->elf, s->scn);
		if (!s->scn)
			return false;
		if (gelf_getshdr(s->scn, &s->sh) && s->sh.sh_entsize &&
		    (s->type ? s->sh.sh_type == s->type
			     : s->sh.sh_type == SHT_DYNSYM || s->sh.sh_type == SHT_SYMTAB))
			s->data = elf_getdata(s->scn, NULL);
	}
}

const char *elffile_symbol_name(const struct elf_symbols *s)
{
	return elf_strptr(s->elf, s->sh.sh_link, s->sym.st_name);
}

/* Go on to the next section of relocations. */
static bool next_relocations(struct elf_slots *s)
{
	s->next = 0;
	do {
		s->data = NULL;
		s->scn = elf_nextscn(s->elf, s->scn);
		if (s->scn && gelf_getshdr(s->scn, &s->sh) && s->sh.sh_type == SHT_RELA)
			s->data = elf_getdata(s->scn, NULL);
	} while (s->scn && !s->data);
	return s->data;
}

/* Is @rela, of the section at hand, a slot's?  Then it is filled in. */
static bool take_slot(struct elf_slots *s, const GElf_Rela *rela)
{
	const uint64_t type = GELF_R_TYPE(rela->r_info);
	Elf_Scn *symbols = elf_getscn(s->elf, s->sh.sh_link);
	Elf_Data *data = symbols ? elf_getdata(symbols, NULL) : NULL;
	GElf_Shdr sh;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || !data ||
	    !gelf_getshdr(symbols, &sh) ||
	    !gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &s->sym))
		return false;
	s->address = rela->r_offset;
	s->name = elf_strptr(s->elf, sh.sh_link, s->sym.st_name);
	return true;
}

bool elffile_next_slot(struct elf_slots *s)
{
	GElf_Rela rela;

	while (s->data || next_relocations(s)) {
		if (!gelf_getrela(s->data, s->next++, &rela))
			s->data = NULL;
		else if (take_slot(s, &rela))
			return true;
	}
	return false;
}

void elffile_functions(Elf *elf, Elf *symbols, enum elf_table table, const struct elf_names *names)
{
	struct elf_symbols s = {.elf = symbols,
				.type = table == ELF_EXPORTED ? SHT_DYNSYM : SHT_SYMTAB};
	bool first[256] = {false};

	for (size_t i = 0; i < names->nr; i++)
		first[(unsigned char)names->all[i][0]] = true;
	while (elffile_next_symbol(&s)) {
		const char *name;

		if (GELF_ST_TYPE(s.sym.st_info) != STT_FUNC || s.sym.st_shndx == SHN_UNDEF)
			continue;
		name = elffile_symbol_name(&s);
		if (name && first[(unsigned char)name[0]])
			match(elf, &s.sym, name, names);
	}
}

bool elffile_has_loader(Elf *elf)
{
	size_t i = 0;
	GElf_Phdr ph;

	return next_phdr(elf, PT_INTERP, &i, &ph);
}

/* The first executable segment that holds @offset.  False: none. */
static bool find_code(Elf *elf, uint64_t offset, GElf_Phdr *ph)
{
	for (size_t i = 0; next_phdr(elf, PT_LOAD, &i, ph);)
		if (ph->p_flags & PF_X && offset >= ph->p_offset &&
		    offset - ph->p_offset < ph->p_filesz)
			return true;
	return false;
}

const uint8_t *elffile_code(Elf *elf, uint64_t offset, uint64_t *start, uint64_t *len)
{
	Elf_Data *data = NULL;
	GElf_Phdr ph;

	*len = find_code(elf, offset, &ph) ? ph.p_filesz : 0;
	if (*len)
		data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, *len, ELF_T_BYTE);
	if (!data)
		return NULL;
	*start = ph.p_offset;
	*len = data->d_size;
	return data->d_buf;
}

uint64_t elffile_bias(Elf *elf, uint64_t offset)
{
	GElf_Phdr ph;

	return find_code(elf, offset, &ph) ? ph.p_vaddr - ph.p_offset : 0;
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
	GElf_Phdr ph;

	memset(id, 0, sizeof(*id));
	for (size_t i = 0; next_phdr(elf, PT_NOTE, &i, &ph);)
		if (build_id_in(elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
						     ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
				id))
			return;
}

/* The ELF file @path, if it is a regular file with the build-id @id. */
static Elf *open_same(const char *path, const struct mlk_id *id, int *fd)
{
	struct mlk_id found;
	struct stat st;
	Elf *elf = NULL;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return NULL;
	if (!fstat(*fd, &st) && S_ISREG(st.st_mode))
		elf = elffile_open(*fd);
	if (elf) {
		elffile_build_id(elf, &found);
		if (found.len == id->len && !memcmp(found.bytes, id->bytes, id->len))
			return elf;
	}
	elf_end(elf);
	close(*fd);
	*fd = -1;
	return NULL;
}

static Elf *by_build_id(const struct mlk_id *id, int *fd)
{
	char path[sizeof("/usr/lib/debug/.build-id//.debug") + 2 * MLK_MAX_ID];
	int len = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", id->bytes[1]);

	for (int i = 2; i < id->len; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", id->bytes[i]);
	snprintf(path + len, sizeof(path) - (size_t)len, ".debug");
	return open_same(path, id, fd);
}

static Elf *by_link(Elf *elf, const char *path, const struct mlk_id *id, int *fd)
{
	static const char *const places[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
	Elf_Scn *scn = elffile_section(elf, ".gnu_debuglink");
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	const char *slash = strrchr(path, '/');
	char at[PATH_MAX];
	Elf *found = NULL;

	if (!data || !data->d_buf || !memchr(data->d_buf, 0, data->d_size) || !slash ||
	    strchr(data->d_buf, '/'))
		return NULL;
	for (size_t i = 0; !found && i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(at, sizeof(at), places[i], (int)(slash - path), path,
				   (const char *)data->d_buf);

		if (len > 0 && (size_t)len < sizeof(at))
			found = open_same(at, id, fd);
	}
	return found;
}

Elf *debugfile_open(Elf *elf, const char *path, int *fd)
{
	struct mlk_id id;
	Elf *found;

	*fd = -1;
	elffile_build_id(elf, &id);
	if (id.len < 2)
		return NULL;
	found = by_build_id(&id, fd);
	return found ? found : by_link(elf, path, &id, fd);
}
