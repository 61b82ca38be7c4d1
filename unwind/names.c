/* names.c - see names.h; and dwunw_symbol_resolve_batch(), which asks for them */
#include "unwind/names.h"

#include <errno.h>
#include <stdlib.h>

#include "unwind/addr_index.h"
#include "unwind/debugfile.h"
#include "unwind/dwunw.h"
#include "unwind/lines.h"
#include "unwind/state.h"
#include "unwind/symbol.h"

struct dwunw_names {
	struct dwunw_debugfile debug;
	struct dwunw_symtab *symtab;
	struct dwunw_lines *lines; /* NULL: there is no debug information */
	struct dwunw_addr_index index;
	struct dwunw_name *known;
	uint32_t nr, room;
};

int dwunw_names_new(struct dwunw_names **out, const struct dwunw_module *module,
		    const struct dwunw_debug_dirs *dirs)
{
	struct dwunw_names *names = NULL;
	int err = -ENOMEM;

	*out = NULL;
	names = calloc(1, sizeof(*names));
	if (!names)
		goto out;
	names->debug.fd = -1;
	err = dwunw_debugfile_find(&names->debug, module, dirs);
	if (err)
		goto out;
	err = dwunw_symtab_new(&names->symtab, module->elf, names->debug.elf);
	if (err)
		goto out;
	if (names->debug.dwarf)
		err = dwunw_lines_new(&names->lines, names->debug.dwarf);
	if (err)
		goto out;
	*out = names;
	names = NULL;
out:
	dwunw_names_free(names);
	return err;
}

void dwunw_names_free(struct dwunw_names *names)
{
	if (!names)
		return;
	free(names->known);
	dwunw_addr_index_release(&names->index);
	dwunw_lines_free(names->lines);
	dwunw_symtab_free(names->symtab);
	dwunw_debugfile_close(&names->debug);
	free(names);
}

static int look_up(struct dwunw_names *names, uint64_t addr, struct dwunw_name *name)
{
	int err = dwunw_symtab_find(names->symtab, addr, &name->function, &name->start);

	if (!err && names->lines)
		err = dwunw_lines_find(names->lines, addr, &name->file, &name->line);
	return err;
}

static int add(struct dwunw_names *names, uint64_t addr)
{
	struct dwunw_name name = {0}, *known;
	uint32_t room = names->room ? 2 * names->room : 64;
	int err = look_up(names, addr, &name);

	if (err)
		return err;
	if (names->nr == names->room) {
		known = room > names->room ? reallocarray(names->known, room, sizeof(*known))
					   : NULL;
		if (!known)
			return -ENOMEM;
		names->known = known;
		names->room = room;
	}
	err = dwunw_addr_index_add(&names->index, addr, names->nr);
	if (!err)
		names->known[names->nr++] = name;
	return err;
}

int dwunw_names_find(struct dwunw_names *names, uint64_t addr, const struct dwunw_name **name)
{
	uint32_t nr = dwunw_addr_index_find(&names->index, addr);

	if (nr == DWUNW_NOT_FOUND) {
		int err = add(names, addr);

		if (err)
			return err;
		nr = names->nr - 1;
	}
	*name = &names->known[nr];
	return 0;
}

static int resolve(struct dwunw *dw, const struct dwunw_frame *frame, struct dwunw_symbol *out)
{
	struct dwunw_module *module = dwunw_module_get(dw, frame->module);
	const struct dwunw_name *name;
	int err = 0;

	*out = (struct dwunw_symbol){0};
	if (!module)
		return 0;
	if (!module->names)
		err = dwunw_names_new(&module->names, module, dwunw_dirs(dw));
	if (!err)
		err = dwunw_names_find(module->names,
				       frame->addr - !!(frame->flags & DWUNW_FRAME_FLAG_RETURN),
				       &name);
	if (err)
		return err;
	out->function = name->function;
	out->offset = name->function ? frame->addr - name->start : 0;
	out->file = name->file;
	out->line = name->line;
	return 0;
}

int dwunw_symbol_resolve_batch(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr_frames,
			       struct dwunw_symbol *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < nr_frames; i++)
		err = resolve(dw, &frames[i], &out[i]);
	return err;
}
