/* module_names.c - see module_names.h */
#include "report/name/module_names.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/array.h"

#define MODULES_MOST 64 /* that are read ahead */

/* Modules that either thread takes the next of. */
struct module_list {
	struct dwunw *dw;
	uint32_t *all;
	size_t nr, room;
	atomic_size_t next;
	atomic_int err; /* 0 or -ENOMEM */
};

static void *read_modules(void *arg)
{
	struct module_list *list = arg;
	size_t i;

	while ((i = list->next++) < list->nr) {
		int err = dwunw_symbol_prepare(list->dw, list->all[i]);

		if (err)
			list->err = err;
	}
	return NULL;
}

static bool is_listed(const struct module_list *list, uint32_t module)
{
	size_t i = list->nr;

	/* mostly the one of the frame before */
	while (i && list->all[i - 1] != module)
		i--;
	return i > 0;
}

/* List the modules of the frames.  Of those beyond @most, names are read as they are requested. */
static int list_modules(struct module_list *list, const struct dwunw_frame *frames, size_t nr,
			size_t most)
{
	int err = 0;

	for (size_t i = 0; i < nr && list->nr < most && !err; i++)
		if (frames[i].module != DWUNW_NO_MODULE && !is_listed(list, frames[i].module))
			err = array_append(&list->all, &list->nr, &list->room, &frames[i].module,
					   sizeof(frames[i].module));
	return err;
}

int module_names_prepare(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr)
{
	struct module_list list = {.dw = dw};
	pthread_t thread;
	int err = list_modules(&list, frames, nr, MODULES_MOST);

	/* of one there is nothing to share, and without a thread the same is done later */
	if (!err && list.nr > 1 && !pthread_create(&thread, NULL, read_modules, &list)) {
		read_modules(&list);
		pthread_join(thread, NULL);
		err = list.err;
	}
	free(list.all);
	return err;
}
