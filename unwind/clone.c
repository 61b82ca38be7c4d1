/* clone.c - an unwinder for another thread */
#include <errno.h>

#include "unwind/dwunw.h"
#include "unwind/module/dwunw_state.h"

static int add_module(struct dwunw *dw, const struct dwunw_module *module)
{
	uint32_t number;
	size_t len = 0;
	const char *image = elf_rawfile(module->elf, &len);

	return image ? dwunw_module_add(dw, &number, module->path, image, len) : -ENOMEM;
}

int dwunw_clone(struct dwunw **out, const struct dwunw *dw)
{
	const struct dwunw_module *module;
	struct dwunw *clone;
	int err = dwunw_new(&clone);

	for (uint32_t i = 0; !err && (module = dwunw_module_get(dw, i)) != NULL; i++)
		err = add_module(clone, module);
	if (err) {
		dwunw_free(clone);
		clone = NULL;
		err = -ENOMEM;
	}
	*out = clone;
	return err;
}
