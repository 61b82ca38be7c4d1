/* resolve.c - the names that dwunw.h promises, from the names of each module */
#include "unwind/dwunw.h"
#include "unwind/module/dwunw_state.h"
#include "unwind/module/names.h"

static int resolve(struct dwunw *dw, const struct dwunw_frame *frame, struct dwunw_symbol *out)
{
	struct dwunw_module *module = dwunw_module_get(dw, frame->module);
	const struct dwunw_name *name;
	int err = 0;

	*out = (struct dwunw_symbol){0};
	if (!module)
		return 0;
	if (!module->names)
		err = dwunw_names_new(&module->names, module, &dw->dirs);
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
	out->inlined = name->inlined;
	out->nr_inlined = name->nr_inlined;
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

int dwunw_symbol_prepare(struct dwunw *dw, uint32_t module)
{
	struct dwunw_module *found = dwunw_module_get(dw, module);

	if (!found || found->names || dw->dirs.fetch)
		return 0;
	return dwunw_names_new(&found->names, found, &dw->dirs);
}

uint32_t dwunw_module_notes(const struct dwunw *dw, uint32_t module)
{
	const struct dwunw_module *found = dwunw_module_get(dw, module);

	return found && found->names ? dwunw_names_notes(found->names) : 0;
}

const char *dwunw_note_text(enum dwunw_note note)
{
	switch (note) {
	case DWUNW_NOTE_UNREADABLE:
		return "its debug information cannot be read";
	case DWUNW_NOTE_NO_ALT:
		return "the file that its debug information shares with others (dwz) was not found";
	case DWUNW_NOTE_SPLIT:
		return "its debug information is in .dwo files, which are not read";
	case DWUNW_NOTE_BAD_MINIDEBUG:
		return "its .gnu_debugdata cannot be read";
	case DWUNW_NOTE_NO_MEMORY:
		return "there was too little memory to read them";
	}
	return "unknown";
}
