/* stack_names.c - see stack_names.h */
#include "report/view/stack_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/name/short_name.h"
#include "report/terminal/color.h"
#include "report/view/recursion.h"

#define LIBRARY "libmleak-preload.so" /* that recorded it */

struct stack_names {
	struct symbols_source source;
	struct symbols_opts opts;
	bool color;
	bool full_recursion;
	size_t columns;
	struct symbols *names;
	struct labels *labels;
};

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

/* The frames of stack @id without those of the library.  Returns how many. */
static size_t frames_of(const struct stack_names *named, uint32_t id, struct dwunw_frame *frames)
{
	size_t nr = dwunw_stack_frames(named->source.dw, id, frames, STACK_MAX_FRAMES), own = 0;

	for (; own < nr; own++) {
		const char *path = symbols_module_path(&named->source, &frames[own]);

		if (strcmp(text_file_name(path), LIBRARY) != 0)
			break;
	}
	memmove(frames, frames + own, (nr - own) * sizeof(*frames));
	return nr - own;
}

int stack_names_want(struct stack_names *named, uint32_t id)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);

	return symbols_want(named->names, frames, nr);
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

/* Write what tells the @nr functions of @path apart to @keys: the first place of each in it. */
static void keys_of(const struct stack_names *named, const uint32_t *path, size_t nr,
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

	keys_of(named, path, nr, keys);
	for (size_t at = 0; at < nr; at += period * times) {
		period = named->full_recursion ? 1 : recursion_at(keys, nr, at, &times);
		for (size_t i = 0; i < period; i++)
			print_label(named, out, path[at + i], indent);
		recursion_print(out, indent, period, times);
	}
	if (status != DWUNW_STATUS_ENDED || !nr)
		fprintf(out, "%s[stack incomplete: %s]\n", indent, dwunw_status_text(status));
}

#define MORE	     "..." /* callers that there is no room for */
#define MOST_IN_LINE 60	   /* columns of a caller's name beside others */

/* What a line says of @period calls of @path, which come @times; to be freed. */
static char *calls_text(const struct stack_names *named, const uint32_t *path, size_t period,
			size_t times, size_t columns)
{
	char number[TEXT_NUMBER_MAX], *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; out && i < period; i++) {
		fputs(i ? " < " : "", out);
		name_print(out, named->labels->all[path[i]].name, columns);
	}
	if (out && times > 1)
		fprintf(out, " x %s", text_number(number, times));
	if (out && !fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Print the @nr frames of @path into a line of @columns, as far as they fit. */
static void print_line_of(const struct stack_names *named, FILE *out, const uint32_t *path,
			  size_t nr, size_t columns)
{
	uint32_t keys[VIEW_MAX_PATH];
	size_t used = 0, period, times = 1;

	keys_of(named, path, nr, keys);
	for (size_t at = 0; at < nr; at += period * times) {
		const char *before = at ? " < " : "";
		char *text;

		period = named->full_recursion ? 1 : recursion_at(keys, nr, at, &times);
		text = calls_text(named, path + at, period, times, at ? MOST_IN_LINE : columns);
		/* the first is there in any case, as is what says that there are more */
		used += strlen(before) + (text ? text_columns(text) : 0);
		if (at && used + strlen(" < " MORE) > columns && at + period * times < nr) {
			fprintf(out, "%s%s", before, MORE);
			free(text);
			return;
		}
		fprintf(out, "%s%s", before, text ? text : "");
		free(text);
	}
}

char *stack_names_line(const struct stack_names *named, uint32_t id, size_t columns)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	uint32_t path[STACK_MAX_FRAMES] = {0};
	size_t nr = frames_of(named, id, frames), len = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	if (!nr)
		fprintf(out, "[no stack: %s]",
			dwunw_status_text(dwunw_stack_status(named->source.dw, id)));
	for (size_t i = 0; i < nr; i++) {
		size_t nr_labels;
		const uint32_t *labels = symbols_labels(named->names, &frames[i], &nr_labels);

		path[i] = labels[nr_labels - 1];
	}
	print_line_of(named, out, path, nr, columns);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

char *stack_names_key(const struct stack_names *named, uint32_t id, uint32_t process)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	uint32_t path[VIEW_MAX_PATH] = {0};
	size_t nr = labels_of(named, frames, frames_of(named, id, frames), path), len = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fprintf(out, "%u %d", process, (int)dwunw_stack_status(named->source.dw, id));
	/* labels differ in function, module or line */
	for (size_t i = 0; i < nr; i++)
		fprintf(out, " %x", path[i]);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
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
	free(named);
}
