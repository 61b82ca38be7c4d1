/* interpreter_place.c - see interpreter_place.h */
#include "record/interpreter/interpreter_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/interpreter/eval_code.h"
#include "record/module/elffile.h"

bool interpreter_is_named(const struct interpreter_kind *kind, const struct mlk_mapping *m)
{
	const char *name = strrchr(m->path, '/');

	return name && strstr(name, kind->file);
}

static void find_symbols(Elf *elf, const struct interpreter_kind *kind, struct elf_place *found)
{
	struct elf_symbols s = {.elf = elf, .type = SHT_DYNSYM};

	while (elffile_next_symbol(&s)) {
		const char *name = elffile_symbol_name(&s);

		for (size_t i = 0; name && i < INTERPRETER_SYMBOLS && kind->symbols[i]; i++)
			if (s.sym.st_shndx != SHN_UNDEF && s.sym.st_size &&
			    !strcmp(name, kind->symbols[i]))
				found[i] = (struct elf_place){s.sym.st_value, s.sym.st_size};
	}
}

/* The first name of @tag in the dynamic section of @elf, or that which is @wanted; NULL: there is
 * none. */
static const char *dynamic_name(Elf *elf, GElf_Sxword tag, const char *wanted)
{
	Elf_Scn *section = elffile_section(elf, ".dynamic");
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Shdr sh;
	GElf_Dyn dyn;

	if (!data || !gelf_getshdr(section, &sh))
		return NULL;
	for (int i = 0; gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
		const char *name =
			dyn.d_tag == tag ? elf_strptr(elf, sh.sh_link, dyn.d_un.d_val) : NULL;

		if (name && (!wanted || !strcmp(name, wanted)))
			return name;
	}
	return NULL;
}

/* Is the library @elf, which is @m, one that the program of @t is linked with?  Those stay. */
static bool is_linked(const struct target *t, const struct mlk_mapping *m, Elf *elf)
{
	const char *name = dynamic_name(elf, DT_SONAME, NULL), *slash = strrchr(m->path, '/');
	int found = target_open_file(t, HELPER_EXE), fd = -1; /* a place only */
	char link[32];
	Elf *program;
	bool is;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	if (found >= 0)
		fd = open(link, O_RDONLY | O_CLOEXEC);
	program = fd < 0 ? NULL : elffile_open(fd);
	is = program && dynamic_name(program, DT_NEEDED, name ? name : slash ? slash + 1 : m->path);
	elf_end(program);
	if (fd >= 0)
		close(fd);
	if (found >= 0)
		close(found);
	return is;
}

bool interpreter_find(struct interpreter_place *place, const struct interpreter_kind *kind,
		      const struct target *t, const struct mlk_mapping *m)
{
	struct elf_place found[INTERPRETER_SYMBOLS] = {{0}};
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool is = false;

	*place = (struct interpreter_place){.language = kind->language};
	if (elf) {
		find_symbols(elf, kind, found);
		is = kind->describe(place, elf, found,
				    m->start - m->offset - elffile_bias(elf, m->offset));
		place->at.loaded = place->at.current_kind && strcmp(m->path, t->exe) != 0 &&
				   !is_linked(t, m, elf);
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is;
}

void interpreter_give_up(struct interpreter_place *place, const char *why)
{
	place->at = (struct event_python){0};
	snprintf(place->why, sizeof(place->why), "%s", why);
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
