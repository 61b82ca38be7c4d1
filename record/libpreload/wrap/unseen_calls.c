/* unseen_calls.c - does the program call functions of its allocator that are not wrapped?
 *
 * They cannot be: programs look for them by weak references, and would take this library for that
 * allocator.  So a program that calls them counts, and the recorder tells.
 */
#ifndef PRELOAD_STATIC

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "record/libpreload/preload.h"

static const char *const unseen_names[] = {
	"mallocx",    "rallocx", "dallocx",   "sdallocx",  "mi_malloc",	 "mi_zalloc", "mi_calloc",
	"mi_realloc", "mi_free", "tc_malloc", "tc_calloc", "tc_realloc", "tc_free",
};

enum { NR_UNSEEN = sizeof(unseen_names) / sizeof(unseen_names[0]) };

/* What a loaded object's dynamic section says. */
struct dynamic_tables {
	const ElfW(Sym) * symbols;
	const char *names;
	const ElfW(Rela) * jumps, *others;
	size_t jump_bytes, other_bytes;
};

static void read_tables(struct dynamic_tables *t, const ElfW(Dyn) * d, uint64_t base)
{
	for (; d->d_tag != DT_NULL; d++) {
		/* Not every loader puts addresses there. */
		const uint64_t value = d->d_un.d_val, at = value < base ? base + value : value;

		if (d->d_tag == DT_SYMTAB)
			t->symbols = (const ElfW(Sym) *)at;
		else if (d->d_tag == DT_STRTAB)
			t->names = (const char *)at;
		else if (d->d_tag == DT_JMPREL)
			t->jumps = (const ElfW(Rela) *)at;
		else if (d->d_tag == DT_PLTRELSZ)
			t->jump_bytes = value;
		else if (d->d_tag == DT_RELA)
			t->others = (const ElfW(Rela) *)at;
		else if (d->d_tag == DT_RELASZ)
			t->other_bytes = value;
	}
}

/* Add to @called, a bit for each name, what the relocations from @r on refer to in other objects.
 */
static void note_called(const struct dynamic_tables *t, const ElfW(Rela) * r, size_t bytes,
			uint32_t *called)
{
	const ElfW(Rela) *end = r + (r ? bytes / sizeof(*r) : 0);

	for (; r < end; r++) {
		const ElfW(Sym) *symbol = t->symbols + ELF64_R_SYM(r->r_info);

		if (!ELF64_R_SYM(r->r_info) || symbol->st_shndx != SHN_UNDEF)
			continue;
		for (int i = 0; i < NR_UNSEEN; i++)
			if (!strcmp(t->names + symbol->st_name, unseen_names[i]))
				*called |= 1u << i;
	}
}

static int see_object(struct dl_phdr_info *info, size_t size, void *called)
{
	struct dynamic_tables t = {0};

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_tables(
				&t,
				(const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				info->dlpi_addr);
	if (!t.symbols || !t.names)
		return 0;
	note_called(&t, t.jumps, t.jump_bytes, called);
	note_called(&t, t.others, t.other_bytes, called);
	return 0;
}

bool preload_calls_unseen(void)
{
	uint32_t called = 0;

	if (preload_state.allocator.start == preload_state.libc.start)
		return false;
	dl_iterate_phdr(see_object, &called);
	for (int i = 0; i < NR_UNSEEN; i++)
		if (called >> i & 1 &&
		    preload_in(&preload_state.allocator,
			       (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, unseen_names[i])))
			return true;
	return false;
}

#endif
