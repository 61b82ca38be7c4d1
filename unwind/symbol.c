/* symbol.c - a sorted table of function symbols, demangled when asked for */
#include "unwind/symbol.h"

#include <errno.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/ranges.h"

struct function {
	uint64_t start;
	uint64_t size;	     /* 0: up to the next, or to the end of the section */
	uint64_t limit;	     /* end of the section; 0: not known */
	const char *raw;     /* as the ELF file has it */
	char *name;	     /* as it is given out; NULL until asked for */
	uint32_t section;    /* number, as the original file counts */
	unsigned char order; /* among the names of one address, the lowest is given out */
};

struct dwunw_symtab {
	struct function *functions;
	size_t nr, room;
	struct dwunw_range *ranges; /* item: number of the function */
};

/* In .symtab a name may carry the version of its symbol: name@VERSION or name@@VERSION. */
static size_t name_len(const char *raw)
{
	return strcspn(raw, "@");
}

static struct function *add(struct dwunw_symtab *tab)
{
	size_t room = tab->room ? 2 * tab->room : 256;
	struct function *functions;

	if (tab->nr < tab->room)
		return &tab->functions[tab->nr++];
	functions = reallocarray(tab->functions, room, sizeof(*functions));
	if (!functions)
		return NULL;
	tab->functions = functions;
	tab->room = room;
	return &tab->functions[tab->nr++];
}

/* Public names before internal ones: `malloc` says more than `__libc_malloc`.  The underscore of a
 * mangled name does not count. */
static unsigned char order_of(const char *raw, unsigned char binding)
{
	bool internal = raw[0] == '_' && raw[1] != 'Z' && raw[1] != 'R';
	unsigned char order = internal ? 3 : 0;

	if (binding == STB_WEAK)
		return order + 1;
	return binding == STB_LOCAL ? order + 2 : order;
}

/* Where the section of a symbol ends.  A reduced image has no sections of code, and numbers those
 * it has anew: what is found there is not believed. */
static uint64_t section_end(Elf *elf, const GElf_Sym *sym)
{
	Elf_Scn *scn = elf_getscn(elf, sym->st_shndx);
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) ||
	    sym->st_value < shdr.sh_addr || sym->st_value - shdr.sh_addr >= shdr.sh_size)
		return 0;
	return shdr.sh_addr + shdr.sh_size;
}

static int add_table(struct dwunw_symtab *tab, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		unsigned char type = GELF_ST_TYPE(sym.st_info);
		struct function *f;
		const char *raw;

		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym.st_shndx == SHN_UNDEF)
			continue;
		raw = elf_strptr(elf, shdr->sh_link, sym.st_name);
		if (!raw || !*raw)
			continue;
		f = add(tab);
		if (!f)
			return -ENOMEM;
		*f = (struct function){
			.start = sym.st_value,
			.size = sym.st_size,
			.limit = section_end(elf, &sym),
			.raw = raw,
			.section = sym.st_shndx,
			.order = order_of(raw, GELF_ST_BIND(sym.st_info)),
		};
	}
	return 0;
}

/* Add the symbols of all sections of type @type; *found tells whether there were any sections. */
static int add_tables(struct dwunw_symtab *tab, Elf *elf, uint32_t type, bool *found)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	int err = 0;

	*found = false;
	while (!err && (scn = elf_nextscn(elf, scn)) != NULL) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type)
			continue;
		*found = true;
		err = add_table(tab, elf, scn, &shdr);
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->order != y->order)
		return x->order - y->order;
	/* Of glibc's free and cfree, the latter is a name that only old programs know. */
	if (name_len(x->raw) != name_len(y->raw))
		return name_len(x->raw) < name_len(y->raw) ? -1 : 1;
	return strcmp(x->raw, y->raw);
}

/* Keep one name for each address, and the largest size that any of them states. */
static void drop_aliases(struct dwunw_symtab *tab)
{
	size_t nr = 0;

	for (size_t i = 0; i < tab->nr; i++) {
		struct function *f = &tab->functions[i], *kept = &tab->functions[nr - !!nr];

		if (!nr || f->start != kept->start)
			tab->functions[nr++] = *f;
		else if (f->size > kept->size)
			kept->size = f->size;
	}
	tab->nr = nr;
}

/* The first address after function @i. */
static uint64_t end_of(const struct dwunw_symtab *tab, size_t i)
{
	const struct function *f = &tab->functions[i];
	uint64_t end;

	if (f->size)
		return __builtin_add_overflow(f->start, f->size, &end) ? UINT64_MAX : end;
	if (i + 1 < tab->nr && f[1].section == f->section)
		return f[1].start;
	return f->limit ? f->limit : f->start + 1;
}

static int make_ranges(struct dwunw_symtab *tab)
{
	tab->ranges = calloc(tab->nr, sizeof(*tab->ranges));
	if (!tab->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < tab->nr; i++)
		tab->ranges[i] = (struct dwunw_range){
			.start = tab->functions[i].start, .end = end_of(tab, i), .item = i};
	dwunw_ranges_link(tab->ranges, tab->nr);
	return 0;
}

int dwunw_symtab_new(struct dwunw_symtab **out, Elf *image, Elf *debug)
{
	struct dwunw_symtab *tab = calloc(1, sizeof(*tab));
	bool found;
	int err;

	*out = NULL;
	if (!tab)
		return -ENOMEM;
	err = add_tables(tab, image, SHT_DYNSYM, &found);
	if (!err)
		err = add_tables(tab, image, SHT_SYMTAB, &found);
	if (!err && !found && debug)
		err = add_tables(tab, debug, SHT_SYMTAB, &found);
	if (!err && tab->nr) {
		qsort(tab->functions, tab->nr, sizeof(*tab->functions), compare);
		drop_aliases(tab);
		err = make_ranges(tab);
	}
	if (err)
		dwunw_symtab_free(tab);
	else
		*out = tab;
	return err;
}

void dwunw_symtab_free(struct dwunw_symtab *tab)
{
	if (!tab)
		return;
	for (size_t i = 0; i < tab->nr; i++)
		free(tab->functions[i].name);
	free(tab->functions);
	free(tab->ranges);
	free(tab);
}

static char *name_of(const char *raw)
{
	char *plain = strndup(raw, name_len(raw)), *demangled;

	if (!plain)
		return NULL;
	demangled = cplus_demangle(plain, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (!demangled)
		return plain;
	free(plain);
	return demangled;
}

int dwunw_symtab_find(struct dwunw_symtab *tab, uint64_t addr, const char **name, uint64_t *start)
{
	const struct dwunw_range *range = dwunw_ranges_find(tab->ranges, tab->nr, addr);
	struct function *f;

	*name = NULL;
	*start = 0;
	if (!range)
		return 0;
	f = &tab->functions[range->item];
	if (!f->name)
		f->name = name_of(f->raw);
	*name = f->name;
	*start = f->start;
	return f->name ? 0 : -ENOMEM;
}
