/* symbol.c - a sorted table of function symbols */
#include "unwind/symbol/symbol.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "unwind/symbol/demangle.h"

/* Many symbols could have one long name. */
#define MAX_COMPARED 256

struct dwunw_function {
	uint64_t start;
	uint64_t size;	     /* 0: up to the next, or to the end of the section */
	uint64_t limit;	     /* end of the section; 0: not known */
	const char *raw;     /* as the ELF file has it */
	uint32_t len;	     /* characters of it, without a version */
	uint32_t section;    /* number, as the original file counts */
	unsigned char order; /* among the names of one address, the lowest is returned */
	bool label;	     /* without a type, as plain assembly leaves it */
};

/* A symbol table being read. */
struct table {
	Elf *elf;
	size_t strings; /* number of the section with the names */
	bool has_code;	/* the file's sections of code are there, at least their headers */
	uint64_t code_start, code_end; /* of the segments that are executed */
	size_t section;		       /* the one that was looked at last, as most have the same */
	uint64_t section_start, section_end; /* of its code; none: both are 0 */
};

/* In .symtab a name may carry the version of its symbol: name@VERSION or name@@VERSION.  One that
 * is longer than any returned one may seem one longer than that. */
static size_t name_len(const char *raw)
{
	size_t len = 0;

	while (len <= DWUNW_MAX_NAME && raw[len] && raw[len] != '@')
		len++;
	return len;
}

/* Public names before internal ones: `malloc` says more than `__libc_malloc`.  The underscore of a
 * mangled name does not count.  Labels come last of all. */
static unsigned char order_of(const char *raw, const GElf_Sym *sym)
{
	bool internal = raw[0] == '_' && raw[1] != 'Z' && raw[1] != 'R';
	unsigned char order = internal ? 3 : 0, binding = GELF_ST_BIND(sym->st_info);

	if (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE)
		order += 6;
	if (binding == STB_WEAK)
		return order + 1;
	return binding == STB_LOCAL ? order + 2 : order;
}

/* Where the section of a symbol ends.  A reduced image has no sections of code, and numbers those
 * it has anew: what is found there is not believed. */
static uint64_t section_end(struct table *table, const GElf_Sym *sym)
{
	GElf_Shdr shdr;
	Elf_Scn *scn;

	/* 0 is no section of code */
	if (sym->st_shndx != table->section) {
		scn = elf_getscn(table->elf, sym->st_shndx);
		if (!scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR))
			shdr = (GElf_Shdr){0};
		table->section = sym->st_shndx;
		table->section_start = shdr.sh_addr;
		table->section_end = shdr.sh_addr + shdr.sh_size;
	}
	if (sym->st_value < table->section_start ||
	    sym->st_value - table->section_start >= table->section_end - table->section_start)
		return 0;
	return table->section_end;
}

/* Find out where the code of @table's file is. */
static void find_code(struct table *table)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Phdr ph;
	size_t nr = 0;

	while (!table->has_code && (scn = elf_nextscn(table->elf, scn)) != NULL)
		table->has_code = gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR;
	table->code_start = UINT64_MAX;
	if (elf_getphdrnum(table->elf, &nr))
		return;
	for (size_t i = 0; i < nr && gelf_getphdr(table->elf, (int)i, &ph); i++) {
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		if (ph.p_vaddr < table->code_start)
			table->code_start = ph.p_vaddr;
		if (ph.p_vaddr + ph.p_memsz > table->code_end)
			table->code_end = ph.p_vaddr + ph.p_memsz;
	}
}

/* Is @sym, which has no type, a place in the code?  By its section; in a reduced image, which has
 * none of code, by the segments. */
static bool is_code_label(struct table *table, const GElf_Sym *sym, const char *raw)
{
	if (sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON || strchr(".$", raw[0]))
		return false;
	if (table->has_code)
		return section_end(table, sym) != 0;
	return sym->st_value >= table->code_start && sym->st_value < table->code_end;
}

/* The name of @sym if it is that of a function or of a place that may be one, else NULL. */
static const char *function_name(struct table *table, const GElf_Sym *sym)
{
	unsigned char type = GELF_ST_TYPE(sym->st_info);
	const char *raw;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    sym->st_shndx == SHN_UNDEF)
		return NULL;
	raw = elf_strptr(table->elf, table->strings, sym->st_name);
	if (!raw || !*raw || (type == STT_NOTYPE && !is_code_label(table, sym, raw)))
		return NULL;
	return raw;
}

static int add_table(struct dwunw_symtab *tab, struct table *table, Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *raw = function_name(table, &sym);
		uint64_t limit;

		if (!raw)
			continue;
		limit = section_end(table, &sym);
		if (grow_array(&tab->functions, tab->nr, &tab->room, sizeof(*tab->functions)))
			return -ENOMEM;
		tab->functions[tab->nr++] = (struct dwunw_function){
			.start = sym.st_value - tab->shift,
			.size = sym.st_size,
			.limit = limit ? limit - tab->shift : 0,
			.raw = raw,
			.len = (uint32_t)name_len(raw),
			.section = sym.st_shndx,
			.order = order_of(raw, &sym),
			.label = GELF_ST_TYPE(sym.st_info) == STT_NOTYPE,
		};
	}
	return 0;
}

int dwunw_symtab_add(struct dwunw_symtab *tab, Elf *elf, uint32_t type, bool *found)
{
	struct table table = {.elf = elf};
	size_t before = tab->nr;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	int err;

	*found = false;
	/* There is one at most; of more, each could be as long as the file. */
	do {
		scn = elf_nextscn(elf, scn);
		if (!scn)
			return 0;
	} while (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type);
	find_code(&table);
	table.strings = shdr.sh_link;
	err = add_table(tab, &table, scn);
	*found = tab->nr > before;
	return err;
}

static int compare_functions(const void *a, const void *b)
{
	const struct dwunw_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->order != y->order)
		return x->order - y->order;
	/* Of glibc's free and cfree, the latter is a name that only old programs know. */
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return strncmp(x->raw, y->raw, MAX_COMPARED);
}

static uint64_t sized_end(const struct dwunw_function *f)
{
	uint64_t end;

	return __builtin_add_overflow(f->start, f->size, &end) ? UINT64_MAX : end;
}

/* Keep one name for each address, and the largest size that any of them states; and no label that
 * only marks a place within a function whose size is known. */
static void drop_aliases(struct dwunw_symtab *tab)
{
	uint64_t covered = 0; /* all before it is within functions kept so far, or between them */
	size_t nr = 0;

	for (size_t i = 0; i < tab->nr; i++) {
		struct dwunw_function *f = &tab->functions[i], *kept = &tab->functions[nr - !!nr];

		if (nr && f->start == kept->start) {
			if (f->size > kept->size)
				kept->size = f->size;
		} else if (!f->label || f->start >= covered) {
			kept = &tab->functions[nr++];
			*kept = *f;
		} else {
			continue;
		}
		if (!kept->label && sized_end(kept) > covered)
			covered = sized_end(kept);
	}
	tab->nr = nr;
}

/* The first address after function @i. */
static uint64_t end_of(const struct dwunw_symtab *tab, size_t i)
{
	const struct dwunw_function *f = &tab->functions[i];

	if (f->size)
		return sized_end(f);
	if (i + 1 < tab->nr && f[1].section == f->section)
		return f[1].start;
	return f->limit ? f->limit : f->start + 1;
}

static int make_ranges(struct dwunw_symtab *tab)
{
	int err = 0;

	for (size_t i = 0; i < tab->nr && !err; i++)
		err = dwunw_ranges_add(&tab->ranges, tab->functions[i].start, end_of(tab, i), i);
	return err ? err : dwunw_ranges_flatten(&tab->ranges);
}

int dwunw_symtab_sort(struct dwunw_symtab *tab)
{
	if (!tab->nr)
		return 0;
	qsort(tab->functions, tab->nr, sizeof(*tab->functions), compare_functions);
	drop_aliases(tab);
	return make_ranges(tab);
}

void dwunw_symtab_release(struct dwunw_symtab *tab)
{
	free(tab->functions);
	dwunw_ranges_release(&tab->ranges);
}

const char *dwunw_symtab_find(const struct dwunw_symtab *tab, uint64_t addr, size_t *len,
			      uint64_t *start)
{
	const struct dwunw_range *range = dwunw_ranges_find(&tab->ranges, addr);
	const struct dwunw_function *f = range ? &tab->functions[range->item] : NULL;

	*len = f ? f->len : 0;
	*start = f ? f->start : 0;
	return f ? f->raw : NULL;
}
