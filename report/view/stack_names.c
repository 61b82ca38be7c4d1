/* stack_names.c - see stack_names.h */
#include "report/view/stack_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/name/short_name.h"
#include "report/terminal/color.h"

#define LIBRARY "libmleak-preload.so" /* that recorded it */

struct stack_names {
	struct symbols_source source;
	struct symbols_opts opts;
	bool color;
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
	named->opts = (struct symbols_opts){
		.addresses = opts->addresses, .lines = true, .inlined = opts->inlined};
	named->color = opts->color;
	named->columns = opts->columns;
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

void stack_names_print(const struct stack_names *named, FILE *out, uint32_t id, const char *indent)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);
	enum dwunw_status status = dwunw_stack_status(named->source.dw, id);

	for (size_t i = 0; i < nr; i++) {
		size_t nr_labels;
		const uint32_t *labels = symbols_labels(named->names, &frames[i], &nr_labels);

		for (size_t k = 0; k < nr_labels; k++) {
			const struct label *label = &named->labels->all[labels[k]];

			fprintf(out, "%s%s", indent, color_of(named->color, COLOR_NAME));
			name_print(out, label->name,
				   name_room(named->columns, columns_beside(label, indent)));
			fputs(color_of(named->color, COLOR_END), out);
			if (label->location[0])
				fprintf(out, "  %s%s%s", color_of(named->color, COLOR_PLACE),
					label->location, color_of(named->color, COLOR_END));
			fputc('\n', out);
		}
	}
	if (status != DWUNW_STATUS_ENDED || !nr)
		fprintf(out, "%s[stack incomplete: %s]\n", indent, dwunw_status_text(status));
}

#define MORE	     "..." /* callers that there is no room for */
#define MOST_IN_LINE 60	   /* columns of a caller's name beside others */

char *stack_names_line(const struct stack_names *named, uint32_t id, size_t columns)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames), len = 0, used = 0;
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
		const char *before = i ? " < " : "";
		char *name = name_to_fit(named->labels->all[labels[nr_labels - 1]].name,
					 i ? MOST_IN_LINE : columns);

		/* the first is there in any case, as is what says that there are more */
		used += strlen(before) + (name ? text_columns(name) : 0);
		if (i && used + strlen(" < " MORE) > columns && i + 1 < nr) {
			fprintf(out, "%s%s", before, MORE);
			free(name);
			break;
		}
		fprintf(out, "%s%s", before, name ? name : "");
		free(name);
	}
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
