/* used_names.c - see used_names.h */
#include "report/dropped/used_names.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

/* A part of an image. */
struct span {
	uint8_t *bytes;
	size_t len;
};

/* A symbol of a function, or of a place that may be one. */
struct function {
	uint64_t start, end;
	uint32_t name; /* offset in the strings */
	size_t number; /* in its table */
	bool used;
};

/* The functions of a symbol table, by address. */
struct functions {
	struct function *all;
	size_t nr, room;
	uint64_t *starts; /* of those used so far, in ascending order */
	size_t nr_starts, starts_room;
};

/* The contents of section @scn within @image; none if it has none there. */
static struct span span_of(struct span image, Elf_Scn *scn)
{
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS ||
	    sh.sh_offset > image.len || sh.sh_size > image.len - sh.sh_offset)
		return (struct span){NULL, 0};
	return (struct span){image.bytes + sh.sh_offset, (size_t)sh.sh_size};
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* The functions among @symbols.  Returns 0 or -ENOMEM. */
static int read_functions(struct functions *to, struct span symbols)
{
	Elf64_Sym sym;
	int err = 0;

	for (size_t i = 0; !err && i < symbols.len / sizeof(sym); i++) {
		struct function f = {.number = i};
		unsigned char type;

		memcpy(&sym, symbols.bytes + i * sizeof(sym), sizeof(sym));
		type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		f.start = sym.st_value;
		f.name = sym.st_name;
		if (__builtin_add_overflow(sym.st_value, sym.st_size, &f.end))
			f.end = UINT64_MAX;
		err = array_append(&to->all, &to->nr, &to->room, &f, sizeof(f));
	}
	if (to->nr)
		qsort(to->all, to->nr, sizeof(*to->all), compare_functions);
	return err;
}

/* Is one of the ascending @addrs at least @from and less than @to? */
static bool has_between(const uint64_t *addrs, size_t nr, uint64_t from, uint64_t to)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addrs[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low < nr && addrs[low] < to;
}

/* Mark the functions that begin at one address, @from to @to, as used if one has one of @addrs in
 * it, or, with @near, if one comes before the next function or after the one before: sizes are not
 * always known.  Names of one place stay together, as which one is shown depends on all of them. */
static void mark_place(struct functions *f, size_t from, size_t to, const uint64_t *addrs,
		       size_t nr, bool near)
{
	uint64_t start = f->all[from].start, end = start + 1;
	uint64_t before = from && near ? f->all[from - 1].start : start;
	bool used = false;

	for (size_t i = from; i < to; i++) {
		used |= f->all[i].used;
		end = f->all[i].end > end ? f->all[i].end : end;
	}
	if (near && to == f->nr)
		end = UINT64_MAX;
	else if (near && f->all[to].start > end)
		end = f->all[to].start;
	used |= has_between(addrs, nr, before, end);
	for (size_t i = from; i < to; i++)
		f->all[i].used = used;
}

static void mark_functions(struct functions *f, const uint64_t *addrs, size_t nr, bool near)
{
	for (size_t from = 0, to; from < f->nr; from = to) {
		for (to = from; to < f->nr && f->all[to].start == f->all[from].start; to++)
			;
		mark_place(f, from, to, addrs, nr, near);
	}
}

/* Find those that may name one of @addrs, and what has these in it.  One is always used: a table
 * without any would be taken for none.  Returns 0 or -ENOMEM. */
static int find_used(struct functions *f, const uint64_t *addrs, size_t nr)
{
	int err = 0;

	if (f->nr)
		f->all[0].used = true;
	mark_functions(f, addrs, nr, true);
	for (size_t i = 0; !err && i < f->nr; i++)
		if (f->all[i].used)
			err = array_append(&f->starts, &f->nr_starts, &f->starts_room,
					   &f->all[i].start, sizeof(*f->starts));
	if (!err)
		mark_functions(f, f->starts, f->nr_starts, false);
	return err;
}

/* Keep the bytes of the string at @name of @strings in @kept, which begins as zeros: up to where
 * another kept it. */
static void keep_string(struct span strings, uint8_t *kept, size_t name)
{
	for (size_t at = name; at < strings.len && strings.bytes[at] && !kept[at]; at++)
		kept[at] = strings.bytes[at];
}

/* Keep, of @symbols, those that are used, and their names.  Returns 0 or -ENOMEM. */
static int drop_others(const struct functions *f, struct span symbols, struct span strings)
{
	uint8_t *kept = calloc(1, symbols.len + 1), *names = calloc(1, strings.len + 1);

	for (size_t i = 0; kept && names && i < f->nr; i++) {
		size_t at = f->all[i].number * sizeof(Elf64_Sym);

		if (!f->all[i].used)
			continue;
		memcpy(kept + at, symbols.bytes + at, sizeof(Elf64_Sym));
		keep_string(strings, names, f->all[i].name);
	}
	if (kept && names) {
		memcpy(symbols.bytes, kept, symbols.len);
		memcpy(strings.bytes, names, strings.len);
	}
	free(kept);
	free(names);
	return kept && names ? 0 : -ENOMEM;
}

static int reduce_table(struct span symbols, struct span strings, const uint64_t *addrs, size_t nr)
{
	struct functions f = {0};
	int err;

	if (!symbols.len || !strings.len)
		return 0;
	err = read_functions(&f, symbols);
	if (!err)
		err = find_used(&f, addrs, nr);
	if (!err)
		err = drop_others(&f, symbols, strings);
	free(f.all);
	free(f.starts);
	return err;
}

static bool is_for_unwinding(const char *name)
{
	return name && (!strcmp(name, ".eh_frame") || !strcmp(name, ".eh_frame_hdr") ||
			!strcmp(name, ".debug_frame"));
}

static int reduce_sections(Elf *elf, struct span image, const uint64_t *addrs, size_t nr)
{
	Elf_Scn *scn = NULL;
	size_t names;
	GElf_Shdr sh;
	int err = 0;

	if (gelf_getclass(elf) != ELFCLASS64 || elf_getshdrstrndx(elf, &names))
		return 0;
	while (!err && (scn = elf_nextscn(elf, scn)) != NULL) {
		struct span span = span_of(image, scn);

		if (!gelf_getshdr(scn, &sh) || !span.len)
			continue;
		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			err = reduce_table(span, span_of(image, elf_getscn(elf, sh.sh_link)), addrs,
					   nr);
		else if (is_for_unwinding(elf_strptr(elf, names, sh.sh_name)))
			memset(span.bytes, 0, span.len);
	}
	return err;
}

int used_names_keep(uint8_t *image, size_t len, const uint64_t *addrs, size_t nr)
{
	uint8_t *copy = malloc(len + 1);
	Elf *elf;
	int err;

	if (!copy)
		return -ENOMEM;
	/* libelf reads the copy: it may change what it is given */
	memcpy(copy, image, len);
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)copy, len);
	err = elf ? reduce_sections(elf, (struct span){image, len}, addrs, nr) : 0;
	elf_end(elf);
	free(copy);
	return err;
}
