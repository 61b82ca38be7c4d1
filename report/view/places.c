/* places.c - see places.h */
#include "report/view/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/text.h"
#include "report/name/disambiguate.h"
#include "report/view/place_labels.h"

struct places {
	const struct view *view; /* only in places_new() */
	struct place *all;
	size_t nr, room;
	struct hash_index index;
	uint32_t *steps; /* the paths of all stacks, one after the other */
	size_t nr_steps, steps_room;
	size_t *first; /* of each stack: where its path begins; and where the last one ends */
};

static bool same_place(const void *things, uint32_t number, const void *key)
{
	const struct place *a = &((const struct places *)things)->all[number], *b = key;

	return a->line == b->line && a->inlined == b->inlined &&
	       !strcmp(a->function, b->function) && !strcmp(a->file, b->file) &&
	       !strcmp(a->module, b->module);
}

static void release(struct place *place)
{
	free(place->function);
	free(place->file);
	free(place->module);
	free(place->told);
}

/* On success the strings of @place belong to @places. */
static int append(struct places *places, const struct place *place, uint64_t hash)
{
	struct place *all;

	if (places->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(places->all, &places->room, places->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	places->all = all;
	if (hash_index_add(&places->index, hash, (uint32_t)places->nr))
		return -ENOMEM;
	all[places->nr++] = *place;
	return 0;
}

/* Find the place that is like @raw, whose strings may be NULL and hold any bytes, or add it. */
static int intern(struct places *places, const struct place *raw, uint32_t *number)
{
	struct place place = {
		.function = text_escape(raw->function ? raw->function : "?"),
		.file = text_escape(raw->file ? raw->file : ""),
		.module = text_escape(raw->module ? raw->module : ""),
		.line = raw->line,
		.inlined = raw->inlined,
	};
	struct hash_query query = {.things = places, .key = &place, .equal = same_place};
	int err = -ENOMEM;

	if (!place.function || !place.file || !place.module)
		goto out;
	query.hash = hash_text(hash_text(hash_text(place.line, place.function), place.file),
			       place.module);
	err = 0;
	if (hash_index_find(&places->index, &query, number))
		goto out;
	err = append(places, &place, query.hash);
	if (err)
		goto out;
	*number = (uint32_t)(places->nr - 1);
	return 0;
out:
	release(&place);
	return err;
}

/* Append the place that is like @raw to the path of the last stack. */
static int add_step(struct places *places, const struct place *raw)
{
	uint32_t *steps = array_grow(places->steps, &places->steps_room, places->nr_steps + 1,
				     sizeof(*steps));
	int err;

	if (!steps)
		return -ENOMEM;
	places->steps = steps;
	err = intern(places, raw, &steps[places->nr_steps]);
	places->nr_steps += !err;
	return err;
}

static char *module_path(const struct symbols_source *source, const struct dwunw_frame *frame)
{
	const char *path = NULL;

	if (frame->module == DWUNW_NO_MODULE)
		return NULL;
	path = dwunw_module_path(source->dw, frame->module);
	if (!path)
		path = trace_modules_absent_path(source->images, frame->module);
	return (char *)path;
}

/* Add the functions inlined at @frame, if they are wanted, and the frame itself. */
static int add_frame(struct places *places, const struct dwunw_frame *frame)
{
	const struct dwunw_symbol *symbol = symbols_symbol(view_names(places->view), frame);
	struct place place = {.module = module_path(view_source(places->view), frame)};
	const uint32_t *labels;
	size_t nr;
	int err = 0;

	place.inlined = true;
	for (size_t i = 0; view_options(places->view)->inlined && i < symbol->nr_inlined; i++) {
		place.function = (char *)symbol->inlined[i].function;
		place.file = (char *)symbol->inlined[i].file;
		place.line = symbol->inlined[i].line;
		err = err ? err : add_step(places, &place);
	}
	labels = symbols_labels(view_names(places->view), frame, &nr);
	place.inlined = false;
	place.function = labels_get(view_labels(places->view), labels[nr - 1])->name;
	place.file = (char *)symbol->file;
	place.line = symbol->file ? symbol->line : 0;
	return err ? err : add_step(places, &place);
}

static int add_stack(struct places *places, size_t i)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct place remark = {0};
	size_t nr = view_frames(places->view, i, frames);
	int err = 0;

	places->first[i] = places->nr_steps;
	for (size_t at = 0; at < nr && !err; at++)
		err = add_frame(places, &frames[at]);
	if (err || (nr && view_stack(places->view, i)->status == DWUNW_STATUS_ENDED))
		return err;
	remark.function = view_remark(places->view, i)->name;
	return add_step(places, &remark);
}

/* What is shown of the modules of @labels, none of which have the same name and module, to @told.
 * Returns 0 or -ENOMEM. */
static int tell_labels(const struct labels *labels, const char **told)
{
	size_t nr_labels = labels_nr(labels), nr = 0;
	struct namesake *all = calloc(nr_labels + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_labels; i++) {
		const struct label *label = labels_get(labels, i);

		if (label->module != LABELS_NO_MODULE)
			all[nr++] = (struct namesake){
				.name = label->name,
				.module = labels_path(labels, label->module),
				.number = i,
			};
	}
	disambiguate(all, nr);
	while (nr--)
		told[all[nr].number] = all[nr].told;
	free(all);
	return 0;
}

/* Find what is shown of each of @places, whose @labels have these @numbers. */
static int tell_places(struct places *places, const struct labels *labels, const uint32_t *numbers)
{
	uint32_t *functions = calloc(labels_nr(labels) + 1, sizeof(*functions));
	const char **told = calloc(labels_nr(labels) + 1, sizeof(*told));
	bool found = false;
	int err = functions && told ? labels_functions(labels, functions, &found) : -ENOMEM;

	if (!err && found)
		err = tell_labels(labels, told);
	for (size_t i = 0; i < places->nr && !err && found; i++) {
		const char *text = told[numbers[i]];

		places->all[i].told = text ? strdup(text) : NULL;
		if (text && !places->all[i].told)
			err = -ENOMEM;
	}
	free(functions);
	free(told);
	return err;
}

static int tell_apart(struct places *places)
{
	struct labels *labels;
	uint32_t *numbers = NULL;
	int err = labels_new(&labels);

	if (!err)
		err = place_labels_new(&numbers, labels, places);
	if (!err)
		err = tell_places(places, labels, numbers);
	free(numbers);
	labels_free(labels);
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
	places->first = calloc(view_nr(view) + 1, sizeof(*places->first));
	if (!places->first)
		err = -ENOMEM;
	for (size_t i = 0; i < view_nr(view) && !err; i++)
		err = add_stack(places, i);
	if (!err)
		err = tell_apart(places);
	if (err) {
		places_free(places);
		return err;
	}
	places->first[view_nr(view)] = places->nr_steps;
	places->view = NULL;
	*out = places;
	return 0;
}

size_t places_nr(const struct places *places)
{
	return places->nr;
}

const struct place *places_get(const struct places *places, uint32_t number)
{
	return &places->all[number];
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

void places_free(struct places *places)
{
	if (!places)
		return;
	for (size_t i = 0; i < places->nr; i++)
		release(&places->all[i]);
	free(places->all);
	hash_index_release(&places->index);
	free(places->steps);
	free(places->first);
	free(places);
}
