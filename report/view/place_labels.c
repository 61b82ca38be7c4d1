/* place_labels.c - see place_labels.h */
#include "report/view/place_labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/base/strings.h"
#include "report/base/text.h"

static int add_one(struct labels *labels, const struct place *place, const char *path,
		   uint32_t *number)
{
	uint32_t module;
	int err = labels_module(labels, path, &module);

	return err ? err : labels_intern(labels, module, place->function, "", number);
}

int place_labels_new(uint32_t **out, struct labels *labels, const struct places *places)
{
	size_t nr = places_nr(places);
	uint32_t *numbers = calloc(nr + 1, sizeof(*numbers));
	int err = numbers ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !err; i++) {
		const struct place *place = places_get(places, i);

		err = add_one(labels, place, place->module, &numbers[i]);
	}
	if (err) {
		free(numbers);
		numbers = NULL;
	}
	*out = numbers;
	return err;
}

/* Names of functions, and which of them are of several modules. */
struct ambiguous {
	struct strings *names;
	bool *all; /* by number of the name */
};

static int note_names(struct ambiguous *ambiguous, const struct places *places)
{
	int err = 0;

	for (uint32_t i = 0; i < places_nr(places) && !err; i++) {
		const struct place *place = places_get(places, i);
		uint32_t number;

		err = strings_intern(ambiguous->names, place->function, &number);
		if (!err && place->told)
			ambiguous->all[number] = true;
	}
	return err;
}

static int add_of_both(struct labels *labels, struct ambiguous *ambiguous,
		       const struct place *place, bool inlined, uint32_t *number)
{
	const char *path = "";
	struct place shown = *place;
	uint32_t name;
	int err = strings_intern(ambiguous->names, place->function, &name);

	if (err)
		return err;
	if (ambiguous->all[name])
		path = text_file_name(place->module);
	if (!inlined || !place->inlined)
		return add_one(labels, place, path, number);
	if (asprintf(&shown.function, "%s (inlined)", place->function) < 0)
		return -ENOMEM;
	err = add_one(labels, &shown, path, number);
	free(shown.function);
	return err;
}

static int add_side(struct labels *labels, struct ambiguous *ambiguous, const struct places *places,
		    bool inlined, uint32_t **out)
{
	size_t nr = places_nr(places);
	int err = 0;

	*out = calloc(nr + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++)
		err = add_of_both(labels, ambiguous, places_get(places, i), inlined, &(*out)[i]);
	return err;
}

int place_labels_both(uint32_t *out[PLACE_LABELS_SIDES], struct labels *labels,
		      const struct places *const sides[PLACE_LABELS_SIDES], bool inlined)
{
	struct ambiguous ambiguous = {0};
	int err = strings_new(&ambiguous.names);

	/* "" is a name, too */
	ambiguous.all =
		calloc(places_nr(sides[0]) + places_nr(sides[1]) + 1, sizeof(*ambiguous.all));
	if (!ambiguous.all)
		err = -ENOMEM;
	for (int side = 0; side < PLACE_LABELS_SIDES; side++) {
		out[side] = NULL;
		err = err ? err : note_names(&ambiguous, sides[side]);
	}
	for (int side = 0; side < PLACE_LABELS_SIDES && !err; side++)
		err = add_side(labels, &ambiguous, sides[side], inlined, &out[side]);
	if (err) {
		free(out[0]);
		free(out[1]);
		out[0] = out[1] = NULL;
	}
	strings_free(ambiguous.names);
	free(ambiguous.all);
	return err;
}

size_t place_labels_path(const struct places *places, size_t i, const uint32_t *numbers,
			 uint32_t path[VIEW_MAX_PATH])
{
	size_t left, nr = 0;
	const uint32_t *all = places_path(places, i, &left);

	while (left && nr < VIEW_MAX_PATH)
		path[nr++] = numbers[all[--left]];
	return nr;
}
