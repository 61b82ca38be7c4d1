/* elf_image.c - write a reduced ELF file: headers as they were, and the sections that a report
 * needs
 */
#include "record/module/elf_image.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/module/elffile.h"
#include "record/module/go_table.h"
#include "record/module/lsan_suppressions.h"
#include "unwind/golang/pclntab.h"

/* .eh_frame_hdr before .eh_frame: libdw 0.188 takes no notice of one that comes later. */
static const char *const wanted[] = {".note.gnu.build-id", ".eh_frame_hdr", ".eh_frame",
				     ".gnu_debuglink"};

/* Fedora's symbol table of stripped files. */
static const char *const minidebug = ".gnu_debugdata";

/* What names functions inlined and lines; locations of variables are not wanted. */
static const char *const dwarf[] = {".debug_info",	  ".debug_abbrev",    ".debug_line",
				    ".debug_line_str",	  ".debug_str",	      ".debug_ranges",
				    ".debug_rnglists",	  ".debug_addr",      ".debug_aranges",
				    ".debug_str_offsets", ".gnu_debugaltlink"};

/* The section that a trace has for them. */
static const char *const suppressions = ".mleak.suppressions";

/* The reduced file while it is made. */
struct reduced {
	Elf *elf;
	char names[1024]; /* the table of section names */
	size_t names_len;
	char *suppressions; /* of lsan_suppressions_of(), or NULL */
	char *go_table;	    /* a copy, or NULL */
};

/* Append @name to the section names; offset 0, the empty name, when it does not fit. */
static size_t add_name(struct reduced *r, const char *name)
{
	size_t at = r->names_len, len = strlen(name) + 1;

	if (len > sizeof(r->names) - at)
		return 0;
	memcpy(r->names + at, name, len);
	r->names_len += len;
	return at;
}

/* Copy section @from of @elf, with its header, under the name @name.  Returns the new section, or
 * NULL: out of memory, or a section that cannot be read (then nothing was added). */
static Elf_Scn *copy_section(struct reduced *r, Elf_Scn *from, const char *name)
{
	Elf_Data *data = elf_getdata(from, NULL), *copy;
	GElf_Shdr sh, made;
	Elf_Scn *to;

	if (!gelf_getshdr(from, &sh) || sh.sh_type == SHT_NOBITS)
		return NULL;
	/* A debug file compresses sections; the reduced file's readers need not know how.  What
	 * libelf cannot decompress stays as it is. */
	if (sh.sh_flags & SHF_COMPRESSED)
		elf_compress(from, 0, 0);
	data = elf_getdata(from, NULL);
	to = data && gelf_getshdr(from, &sh) ? elf_newscn(r->elf) : NULL;
	copy = to ? elf_newdata(to) : NULL;
	if (!copy || !gelf_getshdr(to, &made))
		return NULL;
	*copy = *data;
	copy->d_off = 0;
	copy->d_align = sh.sh_addralign ? sh.sh_addralign : 1;
	made = sh;
	made.sh_name = (GElf_Word)add_name(r, name);
	made.sh_link = made.sh_info = 0;
	return gelf_update_shdr(to, &made) ? to : NULL;
}

/* Copy a symbol table and the strings it names; no table is no error. */
static int copy_symbols(struct reduced *r, Elf *elf, const char *table, const char *strings)
{
	Elf_Scn *from = elffile_section(elf, table), *str = NULL, *sym;
	GElf_Shdr sh, made;

	if (!from || !gelf_getshdr(from, &sh) || sh.sh_type == SHT_NOBITS)
		return 0;
	if (elf_getscn(elf, sh.sh_link))
		str = copy_section(r, elf_getscn(elf, sh.sh_link), strings);
	sym = str ? copy_section(r, from, table) : NULL;
	if (!sym || !gelf_getshdr(sym, &made))
		return -EINVAL;
	made.sh_link = (GElf_Word)elf_ndxscn(str);
	made.sh_info = sh.sh_info;
	return gelf_update_shdr(sym, &made) ? 0 : -EINVAL;
}

static int copy_headers(struct reduced *r, Elf *elf)
{
	GElf_Ehdr from, to;
	GElf_Phdr ph;
	size_t n;

	if (!gelf_getehdr(elf, &from) || elf_getphdrnum(elf, &n) ||
	    !gelf_newehdr(r->elf, gelf_getclass(elf)) || !gelf_getehdr(r->elf, &to))
		return -EINVAL;
	memcpy(to.e_ident, from.e_ident, EI_NIDENT);
	to.e_type = from.e_type;
	to.e_machine = from.e_machine;
	to.e_version = from.e_version;
	to.e_entry = from.e_entry;
	to.e_flags = from.e_flags;
	if (!gelf_update_ehdr(r->elf, &to) || !gelf_newphdr(r->elf, n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!gelf_getphdr(elf, (int)i, &ph) || !gelf_update_phdr(r->elf, (int)i, &ph))
			return -EINVAL;
	return 0;
}

/* Add a section of the @len bytes at @bytes, which are borrowed until the file is written.  NULL:
 * no memory. */
static Elf_Scn *add_section(struct reduced *r, const char *name, GElf_Word type, char *bytes,
			    size_t len)
{
	size_t own = add_name(r, name);
	Elf_Scn *scn = elf_newscn(r->elf);
	Elf_Data *data = scn ? elf_newdata(scn) : NULL;
	GElf_Shdr sh;

	if (!data || !gelf_getshdr(scn, &sh))
		return NULL;
	data->d_buf = bytes;
	data->d_size = len;
	data->d_type = ELF_T_BYTE;
	data->d_align = 1;
	sh.sh_name = (GElf_Word)own;
	sh.sh_type = type;
	sh.sh_addralign = 1;
	return gelf_update_shdr(scn, &sh) ? scn : NULL;
}

/* What the module says of its own leaks; an empty string where that cannot be determined. */
static int add_suppressions(struct reduced *r, Elf *elf, Elf *debug)
{
	bool unclear;
	char *text = r->suppressions = lsan_suppressions_of(elf, debug, &unclear);
	static char empty[1];

	if (!text && !unclear)
		return 0;
	return add_section(r, suppressions, SHT_PROGBITS, text ? text : empty,
			   text ? strlen(text) + 1 : 1)
		       ? 0
		       : -ENOMEM;
}

/* Go's table of functions, wherever it is in the file, with the address that it counts from. */
static int add_go_table(struct reduced *r, Elf *elf)
{
	struct go_table t;

	if (!go_table_find(elf, &t))
		return 0;
	r->go_table = malloc(t.len);
	if (!r->go_table)
		return -ENOMEM;
	memcpy(r->go_table, t.bytes, t.len);
	memcpy(r->go_table + DWUNW_PCLNTAB_TEXT, &t.text, sizeof(t.text));
	return add_section(r, GO_TABLE_SECTION, SHT_PROGBITS, r->go_table, t.len) ? 0 : -ENOMEM;
}

/* The table of section names comes last, when all are known. */
static int add_names_section(struct reduced *r)
{
	Elf_Scn *scn = add_section(r, ".shstrtab", SHT_STRTAB, r->names, 0);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Ehdr ehdr;

	if (!data || !gelf_getehdr(r->elf, &ehdr))
		return -ENOMEM;
	data->d_size = r->names_len; /* with its own name */
	ehdr.e_shstrndx = (GElf_Half)elf_ndxscn(scn);
	return gelf_update_ehdr(r->elf, &ehdr) ? 0 : -ENOMEM;
}

/* Lay the file out ourselves: libelf would move the program headers' segments about. */
static int lay_out(struct reduced *r)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr ehdr;
	GElf_Shdr sh;
	uint64_t at;
	size_t n;

	elf_flagelf(r->elf, ELF_C_SET, ELF_F_LAYOUT);
	if (!gelf_getehdr(r->elf, &ehdr) || elf_getphdrnum(r->elf, &n))
		return -EINVAL;
	ehdr.e_phoff = sizeof(Elf64_Ehdr);
	at = sizeof(Elf64_Ehdr) + n * sizeof(Elf64_Phdr);
	while ((scn = elf_nextscn(r->elf, scn)) != NULL) {
		Elf_Data *data = elf_getdata(scn, NULL);

		if (!data || !gelf_getshdr(scn, &sh))
			return -EINVAL;
		at = (at + 15) & ~15ull;
		sh.sh_offset = at;
		sh.sh_size = data->d_size;
		if (!gelf_update_shdr(scn, &sh))
			return -EINVAL;
		at += sh.sh_size;
	}
	ehdr.e_shoff = (at + 15) & ~15ull;
	if (!gelf_update_ehdr(r->elf, &ehdr))
		return -EINVAL;
	errno = 0; /* which libelf does not report */
	if (elf_update(r->elf, ELF_C_WRITE) > 0)
		return 0;
	return errno == EFBIG ? -EFBIG : -EINVAL;
}

static int read_back(int fd, uint8_t **image, uint64_t *len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = size > 0 ? malloc((size_t)size) : NULL;

	if (!bytes)
		return size > 0 ? -ENOMEM : -EINVAL;
	if (pread(fd, bytes, (size_t)size, 0) != size) {
		free(bytes);
		return -EIO;
	}
	*image = bytes;
	*len = (uint64_t)size;
	return 0;
}

/* The section @name of @elf, or what older tools made of it, compressed: .zdebug_info of
 * .debug_info. */
static Elf_Scn *find_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = elffile_section(elf, name);
	char older[32];

	if (scn || strncmp(name, ".debug_", 7) != 0)
		return scn;
	snprintf(older, sizeof(older), ".z%s", name + 1);
	return elffile_section(elf, older);
}

/* Copy those of the @nr sections named @names that are there.  One that cannot be read is left out:
 * the report says what it then lacks. */
static void copy_sections(struct reduced *r, Elf *elf, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		Elf_Scn *scn = find_section(elf, names[i]);

		if (scn && !elffile_section(elf, names[i]))
			elf_compress_gnu(scn, 0, 0);
		if (scn)
			copy_section(r, scn, names[i]);
	}
}

/* Code without .eh_frame, as musl's, may have its tables in a section that stripping moves to the
 * debug file. */
static void copy_debug_frame(struct reduced *r, Elf *elf, Elf *debug)
{
	static const char *const name = ".debug_frame";

	copy_sections(r, find_section(elf, name) || !debug ? elf : debug, &name, 1);
}

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* @debug: the file with .symtab and DWARF, which may be @elf itself, or NULL. */
static int fill(struct reduced *r, Elf *elf, Elf *debug, enum elf_image_embed embed)
{
	int err = copy_headers(r, elf);

	if (!err)
		copy_sections(r, elf, wanted, NR(wanted));
	if (!err)
		copy_debug_frame(r, elf, debug);
	if (!err)
		err = add_go_table(r, elf);
	if (!err && embed >= EMBED_SYMBOLS) {
		copy_sections(r, elf, &minidebug, 1);
		err = copy_symbols(r, elf, ".dynsym", ".dynstr");
	}
	if (!err && debug && embed >= EMBED_SYMBOLS)
		err = copy_symbols(r, debug, ".symtab", ".strtab");
	if (!err && embed >= EMBED_SYMBOLS)
		err = add_suppressions(r, elf, debug);
	if (!err && debug && embed >= EMBED_DEBUG)
		copy_sections(r, debug, dwarf, NR(dwarf));
	if (!err)
		err = add_names_section(r);
	return err ? err : lay_out(r);
}

int elf_image_make(Elf *elf, const char *path, enum elf_image_embed embed, uint8_t **image,
		   uint64_t *len)
{
	struct reduced r = {.names_len = 1};
	int memfd = memfd_create("mleak-module", MFD_CLOEXEC), debug_fd = -1, err;
	bool own = find_section(elf, embed == EMBED_DEBUG ? ".debug_info" : ".symtab") != NULL;
	Elf *debug = own || embed < EMBED_SYMBOLS ? elf : debugfile_open(elf, path, &debug_fd);

	*image = NULL;
	*len = 0;
	if (memfd < 0) {
		err = -errno;
		goto out;
	}
	r.elf = elf_begin(memfd, ELF_C_WRITE, NULL);
	err = r.elf ? fill(&r, elf, debug ? debug : elf, embed) : -ENOMEM;
	if (!err)
		err = read_back(memfd, image, len);
out:
	elf_end(r.elf);
	free(r.suppressions);
	free(r.go_table);
	if (memfd >= 0)
		close(memfd);
	if (debug != elf)
		elf_end(debug);
	if (debug_fd >= 0)
		close(debug_fd);
	return err;
}
