/* places.c - see places.h */
#include "report/view/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/strings.h"
#include "report/base/text.h"
#include "report/name/frame_kind.h"
#include "report/name/labels.h"

static bool same_place(const void *things, uint32_t number, const void *key)
{
	const struct place *a = &((const struct places *)things)->all[number], *b = key;

	return a->line == b->line && a->inlined == b->inlined &&
	       !strcmp(a->function, b->function) && !strcmp(a->file, b->file) &&
	       !strcmp(a->module, b->module);
}

static void release_place(struct place *place)
{
	free(place->function);
	free(place->file);
	free(place->module);
}

/* Find the place that is like @raw, whose strings may be NULL and hold any bytes, or add it. */
static int intern_place(struct places *places, const struct place *raw, uint32_t *number)
{
	struct place place = {
		.function = text_escape(raw->function ? raw->function : "?"),
		.file = text_escape(raw->file ? raw->file : ""),
		.module = text_escape(raw->module ? raw->module : ""),
		.line = raw->line,
		.inlined = raw->inlined,
	};
	struct hash_query query = {.things = places, .key = &place, .equal = same_place};
	int added = -ENOMEM;

	if (place.function && place.file && place.module) {
		query.hash = hash_text(hash_text(hash_text(place.line, place.function), place.file),
				       place.module);
		added = intern(&places->table, &query, &place, sizeof(place), number);
	}
	if (added <= 0)
		release_place(&place);
	return added < 0 ? added : 0;
}

/* Append place @number to the path of the last stack. */
static int add_number(struct places *places, uint32_t number)
{
	return array_append(&places->steps, &places->nr_steps, &places->steps_room, &number,
			    sizeof(number));
}

/* The same of the place that is like @raw. */
static int add_step(struct places *places, const struct place *raw)
{
	uint32_t number;
	int err = intern_place(places, raw, &number);

	return err ? err : add_number(places, number);
}

/* Add the functions inlined at @frame, if they are wanted, and the frame itself. */
static int add_frame(struct places *places, const struct dwunw_frame *frame)
{
	const struct dwunw_symbol *symbol = symbols_symbol(places->view->names, frame);
	struct place place = {.module = (char *)symbols_module_path(&places->view->source, frame)};
	const uint32_t *labels;
	size_t nr;
	int err = 0;

	place.inlined = true;
	for (size_t i = 0; places->view->opts.inlined && i < symbol->nr_inlined; i++) {
		place.function = (char *)symbol->inlined[i].function;
		place.file = (char *)symbol->inlined[i].file;
		place.line = symbol->inlined[i].line;
		err = err ? err : add_step(places, &place);
	}
	labels = symbols_labels(places->view->names, frame, &nr);
	place.inlined = false;
	place.function = places->view->labels->all[labels[nr - 1]].name;
	place.file = (char *)symbol->file;
	place.line = symbol->file ? symbol->line : 0;
	return err ? err : add_step(places, &place);
}

/* The same of frame @number of the view's names: most were met before. */
static int add_numbered(struct places *places, uint32_t number)
{
	struct place_steps *met = &places->met[number];
	int err = 0;

	if (!met->nr) {
		met->first = places->nr_steps;
		err = add_frame(places, &places->view->names->all[number]);
		met->nr = places->nr_steps - met->first;
		return err;
	}
	for (size_t i = 0; i < met->nr && !err; i++)
		err = add_number(places, places->steps[met->first + i]);
	return err;
}

static int add_place_stack(struct places *places, size_t i)
{
	const struct view *view = places->view;
	uint32_t frames[STACK_MAX_FRAMES];
	enum dwunw_status status = view_stack(view, i)->status;
	struct place remark = {0};
	size_t nr = stacks_places(view->stacks, view->chosen[i], frames, STACK_MAX_FRAMES);
	int err = 0;

	places->first[i] = places->nr_steps;
	for (size_t at = 0; at < nr && !err; at++)
		err = add_numbered(places, view->names->by_place[frames[at]]);
	if (err || (nr && status == DWUNW_STATUS_ENDED))
		return err;
	remark.function = places->view->labels->all[places->view->remarks[status]].name;
	return add_step(places, &remark);
}

static int add_place_label(struct labels *labels, const struct place *place, const char *path,
			   uint32_t *number)
{
	uint32_t module;
	int err = labels_module(labels, path, &module);

	return err ? err : labels_intern(labels, module, place->function, "", number);
}

/* What is shown of the modules of @labels, none of which have the same name and module, to @told.
 * Returns 0 or -ENOMEM. */
static int tell_labels(const struct labels *labels, const char **told)
{
	size_t nr_labels = labels->nr, nr = 0;
	struct namesake *all = calloc(nr_labels + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_labels; i++) {
		const struct label *label = &labels->all[i];

		if (label->module != LABELS_NO_MODULE)
			all[nr++] = (struct namesake){
				.name = label->name,
				.module = labels->modules->all[label->module],
				.number = i,
			};
	}
	disambiguate(all, nr);
	while (nr--)
		told[all[nr].number] = all[nr].told;
	free(all);
	return 0;
}

/* Give all places their labels, and find what is told of each. */
static int label_places(struct places *places)
{
	const char **told = NULL;
	struct label_functions functions = {0};
	int err = labels_new(&places->labels);

	places->numbers = calloc(places->nr + 1, sizeof(*places->numbers));
	if (!places->numbers)
		err = -ENOMEM;
	for (uint32_t i = 0; i < places->nr && !err; i++)
		err = add_place_label(places->labels, &places->all[i], places->all[i].module,
				      &places->numbers[i]);
	if (err)
		return err;
	told = calloc(places->labels->nr + 1, sizeof(*told));
	err = told ? label_functions_update(&functions, places->labels) : -ENOMEM;
	if (!err && functions.namesakes)
		err = tell_labels(places->labels, told);
	for (size_t i = 0; i < places->nr && !err; i++)
		places->all[i].told = told[places->numbers[i]];
	label_functions_release(&functions);
	free(told);
	return err;
}

int places_new(struct places **out, const struct view *view)
{
	struct places *places = calloc(1, sizeof(*places));
	int err = 0;

	*out = NULL;
	if (!places)
		return -ENOMEM;
	places->view = view;
	places->first = calloc(view->nr + 1, sizeof(*places->first));
	places->met = calloc(view->names->nr + 1, sizeof(*places->met));
	if (!places->first || !places->met)
		err = -ENOMEM;
	for (size_t i = 0; i < view->nr && !err; i++)
		err = add_place_stack(places, i);
	if (!err)
		err = label_places(places);
	if (err) {
		places_free(places);
		return err;
	}
	places->first[view->nr] = places->nr_steps;
	places->view = NULL;
	free(places->met);
	places->met = NULL;
	*out = places;
	return 0;
}

const uint32_t *places_path(const struct places *places, size_t i, size_t *nr)
{
	*nr = places->first[i + 1] - places->first[i];
	return &places->steps[places->first[i]];
}

char *place_function(const struct place *place)
{
	char *text;

	if (!place->told)
		return strdup(place->function);
	return asprintf(&text, "%s [%s]", place->function, place->told) < 0 ? NULL : text;
}

char *place_function_marked(const struct place *place)
{
	const char *mark = frame_kind_mark(place->module, place->function);
	char *text;

	if (!*mark)
		return place_function(place);
	return asprintf(&text, "%s%s", place->function, mark) < 0 ? NULL : text;
}

void places_free(struct places *places)
{
	if (!places)
		return;
	for (size_t i = 0; i < places->nr; i++)
		release_place(&places->all[i]);
	intern_release(&places->table);
	free(places->steps);
	free(places->first);
	free(places->met);
	labels_free(places->labels);
	free(places->numbers);
	free(places);
}

/* Names of functions, and which of them are of several modules. */
struct ambiguous {
	struct strings *names;
	bool *all; /* by number of the name */
};

static int note_place_names(struct ambiguous *ambiguous, const struct places *places)
{
	int err = 0;

	for (uint32_t i = 0; i < places->nr && !err; i++) {
		const struct place *place = &places->all[i];
		uint32_t number;

		err = strings_intern(ambiguous->names, place->function, &number);
		if (!err && place->told)
			ambiguous->all[number] = true;
	}
	return err;
}

static int add_label_of_both(struct labels *labels, struct ambiguous *ambiguous,
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
		return add_place_label(labels, place, path, number);
	if (asprintf(&shown.function, "%s (inlined)", place->function) < 0)
		return -ENOMEM;
	err = add_place_label(labels, &shown, path, number);
	free(shown.function);
	return err;
}

static int add_side(struct labels *labels, struct ambiguous *ambiguous, const struct places *places,
		    bool inlined, uint32_t **out)
{
	size_t nr = places->nr;
	int err = 0;

	*out = calloc(nr + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++)
		err = add_label_of_both(labels, ambiguous, &places->all[i], inlined, &(*out)[i]);
	return err;
}

int place_labels_both(uint32_t *out[PLACE_LABELS_SIDES], struct labels *labels,
		      const struct places *const sides[PLACE_LABELS_SIDES], bool inlined)
{
	struct ambiguous ambiguous = {0};
	int err = strings_new(&ambiguous.names);

	/* "" is a name, too */
	ambiguous.all = calloc(sides[0]->nr + sides[1]->nr + 1, sizeof(*ambiguous.all));
	if (!ambiguous.all)
		err = -ENOMEM;
	for (int side = 0; side < PLACE_LABELS_SIDES; side++) {
		out[side] = NULL;
		err = err ? err : note_place_names(&ambiguous, sides[side]);
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
