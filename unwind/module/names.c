/* names.c - see names.h: the symbol tables and the debug information of a module, put together */
#include "unwind/module/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "unwind/cfi/go_rows.h"
#include "unwind/dwarf/lines.h"
#include "unwind/elf/addr_index.h"
#include "unwind/module/debugfile.h"
#include "unwind/module/module.h"
#include "unwind/symbol/demangle.h"
#include "unwind/symbol/symbol.h"

struct dwunw_names {
	struct dwunw_debugfile debug;
	struct dwunw_expanded minidebug;
	struct dwunw_symtab symtab;
	struct dwunw_lines *lines; /* NULL: there is no debug information */
	struct dwunw_pclntab go;   /* of the image; asked for what they do not know */
	struct dwunw_demangled_names strings;
	struct dwunw_addr_index index;
	struct dwunw_name *known;
	uint32_t nr;
	size_t room;
	uint32_t notes; /* enum dwunw_note */
};

/* Add the symbols of .gnu_debugdata.  Returns 0 or -ENOMEM. */
static int add_minidebug(struct dwunw_names *names, Elf *image)
{
	int err = dwunw_minidebug_open(&names->minidebug, image);
	bool found;

	if (err == -EINVAL)
		names->notes |= DWUNW_NOTE_BAD_MINIDEBUG;
	if (err || !names->minidebug.elf)
		return err == -EINVAL ? 0 : err;
	return dwunw_symtab_add(&names->symtab, names->minidebug.elf, SHT_SYMTAB, &found);
}

/* .symtab holds all symbols; .dynsym, which is in every file, those that others use;
 * .gnu_debugdata all others. */
static int find_symbols(struct dwunw_names *names, Elf *image)
{
	/* Sections that were not linked have no addresses. */
	Elf *main = names->debug.main.relocated ? NULL : names->debug.main.elf;
	Elf *const files[] = {image, main, names->debug.symbols.elf};
	bool found;
	int err = dwunw_symtab_add(&names->symtab, image, SHT_DYNSYM, &found);

	found = false;
	for (size_t i = 0; !err && !found && i < sizeof(files) / sizeof(files[0]); i++) {
		names->symtab.shift = i ? names->debug.shift : 0;
		if (files[i])
			err = dwunw_symtab_add(&names->symtab, files[i], SHT_SYMTAB, &found);
	}
	names->symtab.shift = 0;
	if (!err && !found)
		err = add_minidebug(names, image);
	return err ? err : dwunw_symtab_sort(&names->symtab);
}

int dwunw_names_new(struct dwunw_names **out, const struct dwunw_module *module,
		    const struct dwunw_debug_dirs *dirs)
{
	struct dwunw_names *names = calloc(1, sizeof(*names));
	int err;

	*out = NULL;
	if (!names)
		return -ENOMEM;
	err = dwunw_debugfile_find(&names->debug, module, dirs);
	names->notes = names->debug.notes;
	names->strings.mangled = dirs->mangled;
	dwunw_go_table_open(&names->go, module->elf);
	if (!err)
		err = find_symbols(names, module->elf);
	if (!err && names->debug.main.dwarf)
		err = dwunw_lines_new(&names->lines, names->debug.main.dwarf);
	if (err)
		dwunw_names_free(names);
	else
		*out = names;
	return err;
}

void dwunw_names_free(struct dwunw_names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i < names->nr; i++)
		free(names->known[i].inlined);
	free(names->known);
	dwunw_addr_index_release(&names->index);
	dwunw_demangled_names_release(&names->strings);
	dwunw_lines_free(names->lines);
	dwunw_symtab_release(&names->symtab);
	dwunw_expanded_release(&names->minidebug);
	dwunw_debugfile_close(&names->debug);
	free(names);
}

/* The demangled form of @raw, which may be NULL, in *out.  Returns 0 or -ENOMEM. */
static int demangle(struct dwunw_names *names, const char *raw, const char **out)
{
	*out = raw ? dwunw_demangled_names_demangled(&names->strings, raw,
						     strnlen(raw, DWUNW_MAX_NAME + 1))
		   : NULL;
	return raw && !*out ? -ENOMEM : 0;
}

static int add_inlined(struct dwunw_names *names, const struct dwunw_source *source,
		       struct dwunw_name *name)
{
	size_t nr = source->nr - 1;
	int err = 0;

	if (!nr)
		return 0;
	name->inlined = calloc(nr, sizeof(*name->inlined));
	if (!name->inlined)
		return -ENOMEM;
	name->nr_inlined = (uint32_t)nr;
	for (size_t i = 0; i < nr && !err; i++) {
		const struct dwunw_line *place = &source->place[i];

		name->inlined[i].file = place->file;
		name->inlined[i].line = place->line;
		err = demangle(names, place->function, &name->inlined[i].function);
	}
	return err;
}

/* From the address *@addr in the image to that in the debug file.  In one that was not linked it is
 * only known by the function that it is in. */
static bool find_in_file(const struct dwunw_names *names, uint64_t *addr)
{
	const struct dwunw_relocated *file = names->debug.main.relocated;
	uint64_t start, there;
	const char *raw;
	size_t len;

	if (!file) {
		*addr += names->debug.shift;
		return true;
	}
	raw = dwunw_symtab_find(&names->symtab, *addr, &len, &start);
	if (!raw || !dwunw_relocated_find(file, raw, len, &there))
		return false;
	*addr = there + (*addr - start);
	return true;
}

static int look_up_source(struct dwunw_names *names, uint64_t addr, struct dwunw_name *name)
{
	struct dwunw_source source;
	const struct dwunw_line *place;
	int err;

	if (!find_in_file(names, &addr))
		return 0;
	err = dwunw_lines_find(names->lines, addr, &source);
	if (err)
		return err;
	place = &source.place[source.nr - 1];
	name->file = place->file;
	name->line = place->line;
	if (source.split)
		names->notes |= DWUNW_NOTE_SPLIT;
	if (source.starved)
		names->notes |= DWUNW_NOTE_NO_MEMORY;
	if (!name->function && place->function) {
		name->start = source.start - names->debug.shift;
		err = demangle(names, place->function, &name->function);
	}
	return err ? err : add_inlined(names, &source, name);
}

/* What Go's table says of @addr. */
static void look_up_go(struct dwunw_names *names, uint64_t addr, struct dwunw_name *name)
{
	struct dwunw_pcln_function f;

	if ((name->function && name->file) || !dwunw_pclntab_find(&names->go, addr, &f))
		return;
	if (!name->function) {
		name->function = f.name;
		name->start = f.start;
	}
	if (!name->file)
		dwunw_pclntab_line(&names->go, &f, addr, &name->file, &name->line);
}

static int look_up(struct dwunw_names *names, uint64_t addr, struct dwunw_name *name)
{
	size_t len;
	const char *raw = dwunw_symtab_find(&names->symtab, addr, &len, &name->start);
	int err;

	if (raw) {
		name->function = dwunw_demangled_names_demangled(&names->strings, raw, len);
		if (!name->function)
			return -ENOMEM;
	}
	err = names->lines ? look_up_source(names, addr, name) : 0;
	if (!err)
		look_up_go(names, addr, name);
	return err;
}

static int add_name(struct dwunw_names *names, uint64_t addr)
{
	struct dwunw_name name = {0};
	int err = grow_array(&names->known, names->nr, &names->room, sizeof(name));

	if (!err)
		err = look_up(names, addr, &name);
	if (!err)
		err = dwunw_addr_index_add(&names->index, addr, names->nr);
	if (err)
		free(name.inlined);
	else
		names->known[names->nr++] = name;
	return err;
}

int dwunw_names_find(struct dwunw_names *names, uint64_t addr, const struct dwunw_name **name)
{
	uint32_t nr = dwunw_addr_index_find(&names->index, addr);

	if (nr == DWUNW_NOT_FOUND) {
		int err = add_name(names, addr);

		if (err)
			return err;
		nr = names->nr - 1;
	}
	*name = &names->known[nr];
	return 0;
}

uint32_t dwunw_names_notes(const struct dwunw_names *names)
{
	return names->notes;
}
