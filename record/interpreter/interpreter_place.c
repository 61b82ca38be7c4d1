/* interpreter_place.c - see interpreter_place.h */
#include "record/interpreter/interpreter_place.h"

#include <string.h>

#include "record/interpreter/eval_code.h"
#include "record/module/elffile.h"

void interpreter_symbols(Elf *elf, const char *const *names, size_t nr, struct elf_place *found)
{
	struct elf_symbols s = {.elf = elf, .type = SHT_DYNSYM};

	while (elffile_next_symbol(&s)) {
		const char *name = elffile_symbol_name(&s);

		for (size_t i = 0; name && i < nr; i++)
			if (s.sym.st_shndx != SHN_UNDEF && s.sym.st_size && !strcmp(name, names[i]))
				found[i] = (struct elf_place){s.sym.st_value, s.sym.st_size};
	}
}

void interpreter_set_ranges(struct interpreter_place *place, Elf *elf, const struct elf_place *eval,
			    uint64_t bias)
{
	struct mlk_code_range all[2] = {{eval->start, eval->start + eval->size}}, swap;
	uint32_t nr = 1;

	nr += eval_code_cold(elf, all[0].start, all[0].end, &all[1]);
	if (nr == 2 && all[1].start < all[0].start) {
		swap = all[0];
		all[0] = all[1];
		all[1] = swap;
	}
	for (uint32_t i = 0; i < nr; i++)
		place->ranges[i] = (struct mlk_code_range){all[i].start + bias, all[i].end + bias};
	place->nr_ranges = nr;
}
