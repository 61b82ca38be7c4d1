/* stack_names.c - see named.h */
#include "report/view/stack_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/terminal/color.h"
#include "report/base/text.h"

#define LIBRARY "libmleak-preload.so" /* that recorded it */

struct named {
	struct names_source source;
	struct names_opts opts;
	bool color;
	struct names *names;
	struct labels *labels;
};

int named_new(struct named **out, const struct names_source *source, const struct view_opts *opts)
{
	struct named *named = calloc(1, sizeof(*named));
	int err;

	*out = NULL;
	if (!named)
		return -ENOMEM;
	named->source = *source;
	named->opts = (struct names_opts){
		.addresses = opts->addresses, .lines = true, .inlined = opts->inlined};
	named->color = opts->color;
	err = names_new(&named->names);
	if (!err)
		err = labels_new(&named->labels);
	if (err)
		named_free(named);
	else
		*out = named;
	return err;
}

/* The frames of stack @id without those of the library.  Returns how many. */
static size_t frames_of(const struct named *named, uint32_t id, struct dwunw_frame *frames)
{
	size_t nr = dwunw_stack_frames(named->source.dw, id, frames, STACK_MAX_FRAMES), own = 0;

	for (; own < nr; own++) {
		const char *path = names_module_path(&named->source, &frames[own]);

		if (strcmp(text_file_name(path), LIBRARY) != 0)
			break;
	}
	memmove(frames, frames + own, (nr - own) * sizeof(*frames));
	return nr - own;
}

int named_want(struct named *named, uint32_t id)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);

	return names_want(named->names, frames, nr);
}

int named_resolve(struct named *named)
{
	return names_resolve(named->names, &named->source, &named->opts, named->labels);
}

void named_print(const struct named *named, FILE *out, uint32_t id, const char *indent)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);
	enum dwunw_status status = dwunw_stack_status(named->source.dw, id);

	for (size_t i = 0; i < nr; i++) {
		size_t nr_labels;
		const uint32_t *labels = names_labels(named->names, &frames[i], &nr_labels);

		for (size_t k = 0; k < nr_labels; k++) {
			const struct label *label = labels_get(named->labels, labels[k]);

			fprintf(out, "%s%s%s%s", indent, color_of(named->color, COLOR_NAME),
				label->name, color_of(named->color, COLOR_END));
			if (label->location[0])
				fprintf(out, "  %s%s%s", color_of(named->color, COLOR_PLACE),
					label->location, color_of(named->color, COLOR_END));
			fputc('\n', out);
		}
	}
	if (status != DWUNW_STATUS_ENDED || !nr)
		fprintf(out, "%s[stack incomplete: %s]\n", indent, dwunw_status_text(status));
}

static void put_frame(const struct named *named, struct json *json, const struct dwunw_frame *frame)
{
	const struct dwunw_symbol *symbol = names_symbol(named->names, frame);
	size_t nr;
	const uint32_t *labels = names_labels(named->names, frame, &nr);

	for (size_t i = 0; named->opts.inlined && i < symbol->nr_inlined; i++) {
		json_open(json, NULL, '{');
		json_text(json, "function",
			  symbol->inlined[i].function ? symbol->inlined[i].function : "?");
		json_text(json, "module", names_module_path(&named->source, frame));
		json_text(json, "file", symbol->inlined[i].file ? symbol->inlined[i].file : "");
		json_number(json, "line", symbol->inlined[i].line);
		json_bool(json, "inlined", true);
		json_close(json, '}');
	}
	json_open(json, NULL, '{');
	json_text(json, "function", labels_get(named->labels, labels[nr - 1])->name);
	json_text(json, "module", names_module_path(&named->source, frame));
	json_text(json, "file", symbol->file ? symbol->file : "");
	json_number(json, "line", symbol->file ? symbol->line : 0);
	json_bool(json, "inlined", false);
	json_close(json, '}');
}

void named_json(const struct named *named, struct json *json, uint32_t id)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = frames_of(named, id, frames);

	json_bool(json, "complete", dwunw_stack_status(named->source.dw, id) == DWUNW_STATUS_ENDED);
	json_open(json, "frames", '[');
	for (size_t i = 0; i < nr; i++)
		put_frame(named, json, &frames[i]);
	json_close(json, ']');
}

void named_free(struct named *named)
{
	if (!named)
		return;
	names_free(named->names);
	labels_free(named->labels);
	free(named);
}
