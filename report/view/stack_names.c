/* stack_names.c - see stack_names.h */
#include "report/view/stack_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/text.h"
#include "report/name/short_name.h"
#include "report/terminal/color.h"
#include "report/view/recursion.h"
#include "report/view/stack_names_state.h"

#define LIBRARY "libmleak-preload.so" /* that recorded it */

int stack_names_new(struct stack_names **out, const struct symbols_source *source,
		    const struct view_opts *opts)
{
	struct stack_names *named = calloc(1, sizeof(*named));
	int err;

	*out = NULL;
	if (!named)
		return -ENOMEM;
	named->source = *source;
	named->opts = (struct symbols_opts){.addresses = opts->addresses,
					    .offsets = opts->offsets,
					    .lines = true,
					    .inlined = opts->inlined};
	named->color = opts->color;
	named->columns = opts->columns;
	named->full_recursion = opts->full_recursion;
	err = symbols_new(&named->names);
	if (!err)
		err = labels_new(&named->labels);
	if (err)
		stack_names_free(named);
	else
		*out = named;
	return err;
}

/* The stack of those that call the library in stack @id, which is @id if it is not called. */
static uint32_t without_library(const struct stack_names *named, uint32_t id)
{
	struct dwunw_frame frame;

	while (dwunw_stack_frames(named->source.dw, id, &frame, 1)) {
		const char *path = symbols_module_path(&named->source, &frame);

		if (strcmp(text_file_name(path), LIBRARY) != 0)
			break;
		id = dwunw_stack_parent(named->source.dw, id);
	}
	return id;
}

/* The frames of stack @id without those of the library.  Returns how many. */
static size_t frames_of(const struct stack_names *named, uint32_t id, struct dwunw_frame *frames)
{
	return dwunw_stack_frames(named->source.dw, without_library(named, id), frames,
				  STACK_MAX_FRAMES);
}

int stack_names_want(struct stack_names *named, uint32_t id)
{
	const struct dwunw *dw = named->source.dw;
	struct dwunw_frame frame;
	int err = array_cover(&named->met, &named->nr_met, dwunw_stack_limit(dw),
			      sizeof(*named->met));

	for (id = without_library(named, id);
	     !err && !named->met[id] && dwunw_stack_frames(dw, id, &frame, 1);
	     id = dwunw_stack_parent(dw, id)) {
		named->met[id] = true;
		err = symbols_want(named->names, &frame, 1);
	}
	return err;
}

int stack_names_resolve(struct stack_names *named)
{
	return symbols_resolve(named->names, &named->source, &named->opts, named->labels);
}

/* How many columns of a line of @label behind @indent are not its name. */
static size_t columns_beside(const struct label *label, const char *indent)
{
	size_t nr = label->location[0] ? 2 + text_columns(label->location) : 0;

	for (; *indent; indent++)
		nr += *indent == '\t' ? 8 : 1;
	return nr;
}

static void print_label(const struct stack_names *named, FILE *out, uint32_t number,
			const char *indent)
{
	const struct label *label = &named->labels->all[number];

	fprintf(out, "%s%s", indent, color_of(named->color, COLOR_NAME));
	name_print(out, label->name, name_room(named->columns, columns_beside(label, indent)));
	fputs(color_of(named->color, COLOR_END), out);
	if (label->location[0])
		fprintf(out, "  %s%s%s", color_of(named->color, COLOR_PLACE), label->location,
			color_of(named->color, COLOR_END));
	fputc('\n', out);
}

/* The labels of @nr @frames, innermost first, to @path; of inlined functions the outer ones that do
 * not fit are left out.  Returns how many. */
static size_t labels_of(const struct stack_names *named, const struct dwunw_frame *frames,
			size_t nr_frames, uint32_t path[VIEW_MAX_PATH])
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_frames; i++) {
		size_t nr_labels;
		const uint32_t *labels = symbols_labels(named->names, &frames[i], &nr_labels);

		for (size_t k = 0; k < nr_labels; k++)
			if (k + 1 == nr_labels || nr + nr_frames - i < VIEW_MAX_PATH)
				path[nr++] = labels[k];
	}
	return nr;
}

static bool same_function(const struct label *a, const struct label *b)
{
	return a == b || (a->module == b->module && !strcmp(a->name, b->name));
}

void stack_names_keys(const struct stack_names *named, const uint32_t *path, size_t nr,
		      uint32_t *keys)
{
	const struct label *all = named->labels->all;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t first = 0;

		while (first < i && !same_function(&all[path[first]], &all[path[i]]))
			first++;
		keys[i] = first;
	}
}

void stack_names_print(const struct stack_names *named, FILE *out, uint32_t id, const char *indent)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	uint32_t path[VIEW_MAX_PATH] = {0}, keys[VIEW_MAX_PATH];
	size_t nr_frames = frames_of(named, id, frames), period, times = 1;
	size_t nr = labels_of(named, frames, nr_frames, path);
	enum dwunw_status status = dwunw_stack_status(named->source.dw, id);

	stack_names_keys(named, path, nr, keys);
	for (size_t at = 0; at < nr; at += period * times) {
		period = named->full_recursion ? 1 : recursion_at(keys, nr, at, &times);
		for (size_t i = 0; i < period; i++)
			print_label(named, out, path[at + i], indent);
		recursion_print(out, indent, period, times);
	}
	if (status != DWUNW_STATUS_ENDED || !nr)
		fprintf(out, "%s[stack incomplete: %s]\n", indent, dwunw_status_text(status));
}

size_t stack_names_outer(const struct stack_names *named, uint32_t id,
			 uint32_t path[STACK_MAX_FRAMES])
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);

	for (size_t i = 0; i < nr; i++) {
		size_t nr_labels;
		const uint32_t *labels = symbols_labels(named->names, &frames[i], &nr_labels);

		path[i] = labels[nr_labels - 1];
	}
	return nr;
}

const char *stack_names_location(const struct stack_names *named, uint32_t id)
{
	uint32_t path[STACK_MAX_FRAMES] = {0};
	size_t nr = stack_names_outer(named, id, path);

	for (size_t i = 0; i < nr; i++)
		if (named->labels->all[path[i]].location[0])
			return named->labels->all[path[i]].location;
	return "";
}

/* Number the stack of the innermost function of @id, whose callers have *@number, which becomes its
 * own. */
static int number_frame(struct stack_names *named, uint32_t id, uint32_t *number)
{
	uint32_t place;
	size_t nr = 0;
	const uint32_t *labels = NULL;

	/* what is above all frames says whether the stack is complete */
	if (!dwunw_stack_places(named->source.dw, id, &place, 1)) {
		labels = &id;
		nr = 1;
	} else {
		labels = symbols_labels_at(named->names, place, &nr);
	}
	/* labels differ in function, module or line */
	while (nr-- > 0) {
		const struct stack_pair pair = {*number, labels[nr]};

		if (intern_pair(&named->pairs.table, &pair, sizeof(pair), number) < 0)
			return -ENOMEM;
	}
	named->numbers[id] = *number + 1;
	return 0;
}

int stack_names_number(struct stack_names *named, uint32_t id, uint32_t *number)
{
	const struct dwunw *dw = named->source.dw;
	uint32_t *way = NULL;
	size_t nr = 0, room = 0;
	int err = array_cover(&named->numbers, &named->nr_numbers, dwunw_stack_limit(dw),
			      sizeof(*named->numbers));

	/* up to callers that have a number, and back */
	for (id = without_library(named, id); !err && id && !named->numbers[id];
	     id = dwunw_stack_parent(dw, id))
		err = array_append(&way, &nr, &room, &id, sizeof(id));
	*number = !err && id ? named->numbers[id] - 1 : UINT32_MAX;
	while (nr-- > 0 && !err)
		err = number_frame(named, way[nr], number);
	free(way);
	return err;
}

/* The functions of a stack, the innermost first. */
struct calls {
	uint32_t *path;
	size_t nr, at; /* at: which of the stacks it is */
	size_t shared; /* innermost functions that another stack has, too */
};

static int compare_functions(const struct stack_names *named, uint32_t a, uint32_t b)
{
	const struct label *x = &named->labels->all[a], *y = &named->labels->all[b];

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x == y ? 0 : strcmp(x->name, y->name);
}

/* How many innermost functions both have. */
static size_t shared_calls(const struct stack_names *named, const struct calls *a,
			   const struct calls *b)
{
	size_t nr = 0;

	while (nr < a->nr && nr < b->nr && !compare_functions(named, a->path[nr], b->path[nr]))
		nr++;
	return nr;
}

static int compare_calls(const void *a, const void *b, void *named)
{
	const struct calls *x = a, *y = b;
	size_t nr = shared_calls(named, x, y);

	if (nr < x->nr && nr < y->nr)
		return compare_functions(named, x->path[nr], y->path[nr]);
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

/* What each of the sorted stacks shares with the next one, in the order of @step, that is not the
 * same. */
static void note_shared(const struct stack_names *named, struct calls *all, size_t nr, long step)
{
	size_t shared = 0;

	for (size_t i = 1; i < nr; i++) {
		const struct calls *before = &all[step > 0 ? i - 1 : nr - i];
		struct calls *calls = &all[step > 0 ? i : nr - 1 - i];
		size_t common = shared_calls(named, before, calls);

		if (common < before->nr || common < calls->nr)
			shared = common;
		if (shared > calls->shared)
			calls->shared = shared;
	}
}

int stack_names_apart(const struct stack_names *named, const uint32_t *ids, size_t nr, size_t *from)
{
	struct calls *all = calloc(nr + 1, sizeof(*all));
	uint32_t path[STACK_MAX_FRAMES];
	int err = all ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < nr; i++) {
		all[i] = (struct calls){.nr = stack_names_outer(named, ids[i], path), .at = i};
		all[i].path = malloc((all[i].nr + 1) * sizeof(*path));
		if (!all[i].path)
			err = -ENOMEM;
		else
			memcpy(all[i].path, path, all[i].nr * sizeof(*path));
	}
	if (!err && nr) {
		qsort_r(all, nr, sizeof(*all), compare_calls, (void *)(uintptr_t)named);
		note_shared(named, all, nr, 1);
		note_shared(named, all, nr, -1);
	}
	for (size_t i = 0; all && i < nr; i++) {
		/* what is all of another stack differs from it nowhere */
		if (!err)
			from[all[i].at] = all[i].shared < all[i].nr ? all[i].shared : 0;
		free(all[i].path);
	}
	free(all);
	return err;
}

static void put_frame(const struct stack_names *named, struct json *json,
		      const struct dwunw_frame *frame)
{
	const struct dwunw_symbol *symbol = symbols_symbol(named->names, frame);
	size_t nr;
	const uint32_t *labels = symbols_labels(named->names, frame, &nr);

	for (size_t i = 0; named->opts.inlined && i < symbol->nr_inlined; i++) {
		json_open(json, NULL, '{');
		json_text(json, "function",
			  symbol->inlined[i].function ? symbol->inlined[i].function : "?");
		json_text(json, "module", symbols_module_path(&named->source, frame));
		json_text(json, "file", symbol->inlined[i].file ? symbol->inlined[i].file : "");
		json_number(json, "line", symbol->inlined[i].line);
		json_bool(json, "inlined", true);
		json_close(json, '}');
	}
	json_open(json, NULL, '{');
	json_text(json, "function", named->labels->all[labels[nr - 1]].name);
	json_text(json, "module", symbols_module_path(&named->source, frame));
	json_text(json, "file", symbol->file ? symbol->file : "");
	json_number(json, "line", symbol->file ? symbol->line : 0);
	json_bool(json, "inlined", false);
	json_close(json, '}');
}

void stack_names_json(const struct stack_names *named, struct json *json, uint32_t id)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);

	json_bool(json, "complete", dwunw_stack_status(named->source.dw, id) == DWUNW_STATUS_ENDED);
	json_open(json, "frames", '[');
	for (size_t i = 0; i < nr; i++)
		put_frame(named, json, &frames[i]);
	json_close(json, ']');
}

void stack_names_free(struct stack_names *named)
{
	if (!named)
		return;
	symbols_free(named->names);
	labels_free(named->labels);
	free(named->met);
	intern_release(&named->pairs.table);
	free(named->numbers);
	free(named);
}
