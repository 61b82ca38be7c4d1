/* python_find.c - see python_find.h */
#include "record/interpreter/python_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/interpreter/eval_code.h"
#include "record/interpreter/python_layout.h"
#include "record/module/elffile.h"

/* What is looked for among the file's dynamic symbols. */
enum { RUNTIME, CODE_TYPE, VERSION, EVAL, NR_SYMBOLS };

static const char *const names[NR_SYMBOLS] = {[RUNTIME] = "_PyRuntime",
					      [CODE_TYPE] = "PyCode_Type",
					      [VERSION] = "Py_Version",
					      [EVAL] = "_PyEval_EvalFrameDefault"};

/* A symbol, as the file numbers its addresses; size 0: there is none. */
struct symbol {
	uint64_t start, size;
};

bool python_is_likely(const struct mlk_mapping *m)
{
	const char *name = strrchr(m->path, '/');

	return name && strstr(name, "python");
}

static void find_symbols(Elf *elf, struct symbol *found)
{
	struct elf_symbols s = {.elf = elf, .type = SHT_DYNSYM};

	while (elffile_next_symbol(&s)) {
		const char *name = elffile_symbol_name(&s);

		for (int i = 0; name && i < NR_SYMBOLS; i++)
			if (s.sym.st_shndx != SHN_UNDEF && s.sym.st_size && !strcmp(name, names[i]))
				found[i] = (struct symbol){s.sym.st_value, s.sym.st_size};
	}
}

/* Note the code that interprets, moved by @bias. */
static void find_ranges(struct python_place *place, Elf *elf, const struct symbol *eval,
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

/* Fill place->at where the version's layout is known. */
static void find_layout(struct python_place *place, const struct target *t,
			const struct symbol *found, uint64_t bias)
{
	const struct python_layout *layout;
	uint64_t version = 0;

	if (!found[VERSION].size ||
	    target_read_memory(t, found[VERSION].start + bias, &version, sizeof(version))) {
		snprintf(place->why, sizeof(place->why), "a version before 3.11 is not known");
		return;
	}
	snprintf(place->version, sizeof(place->version), "%u.%u.%u",
		 (uint32_t)(version >> 24 & 0xff), (uint32_t)(version >> 16 & 0xff),
		 (uint32_t)(version >> 8 & 0xff));
	layout = python_layout((uint32_t)(version >> 16));
	if (!layout) {
		snprintf(place->why, sizeof(place->why), "this version is not known");
		return;
	}
	place->at = layout->offsets;
	place->at.current = found[RUNTIME].start + bias + layout->current;
	place->at.code_type = found[CODE_TYPE].start + bias;
}

bool python_find(struct python_place *place, const struct target *t, const struct mlk_mapping *m)
{
	struct symbol found[NR_SYMBOLS] = {{0}};
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool is = false;

	*place = (struct python_place){0};
	if (elf) {
		uint64_t bias = m->start - m->offset - elffile_bias(elf, m->offset);

		find_symbols(elf, found);
		is = found[RUNTIME].size && found[CODE_TYPE].size && found[EVAL].size;
		if (is) {
			find_ranges(place, elf, &found[EVAL], bias);
			find_layout(place, t, found, bias);
		}
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is;
}
