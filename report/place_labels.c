/* place_labels.c - see place_labels.h */
#include "report/place_labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_one(struct labels *labels, const struct place *place,
		   const struct place_labels_opts *opts, uint32_t *number)
{
	const char *slash = opts->by_base ? strrchr(place->module, '/') : NULL;
	uint32_t module;
	char *name;
	int err = labels_module(labels, slash && slash[1] ? slash + 1 : place->module, &module);

	if (err || !opts->inlined || !place->inlined)
		return err ? err : labels_intern(labels, module, place->function, "", number);
	if (asprintf(&name, "%s (inlined)", place->function) < 0)
		return -ENOMEM;
	err = labels_intern(labels, module, name, "", number);
	free(name);
	return err;
}

int place_labels_new(uint32_t **out, struct labels *labels, const struct places *places,
		     const struct place_labels_opts *opts)
{
	size_t nr = places_nr(places);
	uint32_t *numbers = calloc(nr + 1, sizeof(*numbers));
	int err = numbers ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !err; i++)
		err = add_one(labels, places_get(places, i), opts, &numbers[i]);
	if (err) {
		free(numbers);
		numbers = NULL;
	}
	*out = numbers;
	return err;
}
