/* bound_past.c - see bound_past.h */
#include "record/module/bound_past.h"

#include <string.h>
#include <unistd.h>

#include "record/module/elffile.h"

static const char *const names[] = {"malloc",	      "calloc",	       "realloc",
				    "posix_memalign", "aligned_alloc", "mmap"};

static bool is_wanted(const struct elf_slots *s)
{
	for (size_t i = 0; s->name && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(s->name, names[i]))
			return s->sym.st_shndx == SHN_UNDEF;
	return false;
}

/* Does the word at @address of @t point into the C library? */
static bool leads_to_libc(const struct target *t, const struct maps *maps, uint64_t address)
{
	const struct mlk_mapping *m = NULL;
	uint64_t word;

	if (!target_read_memory(t, address, &word, sizeof(word)))
		m = maps_find(maps, word);
	return m && target_is_libc(m->path);
}

static bool find_slot(Elf *elf, const struct target *t, const struct maps *maps, uint64_t bias)
{
	struct elf_slots s = {.elf = elf};

	while (elffile_next_slot(&s))
		if (is_wanted(&s) && leads_to_libc(t, maps, s.address + bias))
			return true;
	return false;
}

bool module_is_bound_past(const struct target *t, const struct maps *maps,
			  const struct mlk_mapping *m)
{
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool is =
		elf && find_slot(elf, t, maps, m->start - m->offset - elffile_bias(elf, m->offset));

	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is;
}
