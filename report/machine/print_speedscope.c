/* print_speedscope.c - the file format of https://www.speedscope.app
 *
 * Two sampled profiles: each stack is one sample, whose weight is what is outstanding of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "mleak.h"
#include "report/base/json.h"
#include "report/context/report_data.h"

/* Behind the places are the processes, if there are several, as functions that call all others. */
static void put_processes(struct json *json, const struct report_data *export)
{
	const char *name;

	for (uint32_t i = 0; i < live_nr_processes(export->leaks->live); i++) {
		name = view_process(export->view, i);
		if (!name)
			return;
		json_open(json, NULL, '{');
		json_text(json, "name", name);
		json_close(json, '}');
	}
}

static int put_frames(struct json *json, const struct report_data *export)
{
	const struct places *places = export->places;

	json_open(json, "shared", '{');
	json_open(json, "frames", '[');
	for (size_t i = 0; i < places->nr; i++) {
		const struct place *place = &places->all[i];
		char *function = place_function_marked(place);

		if (!function)
			return -ENOMEM;
		json_open(json, NULL, '{');
		json_text(json, "name", function);
		free(function);
		if (place->file[0])
			json_text(json, "file", place->file);
		if (place->line)
			json_number(json, "line", place->line);
		json_close(json, '}');
	}
	put_processes(json, export);
	json_close(json, ']');
	json_close(json, '}');
	return 0;
}

static uint64_t weight_of(const struct stack *stack, bool bytes)
{
	return bytes ? stack->bytes : stack->blocks;
}

static void put_samples(struct json *json, const struct report_data *export)
{
	json_open(json, "samples", '[');
	for (size_t i = 0; i < export->view->nr; i++) {
		size_t nr;
		const uint32_t *path = places_path(export->places, i, &nr);

		json_open(json, NULL, '[');
		if (report_data_process(export, i))
			json_number(json, NULL,
				    export->places->nr + view_stack(export->view, i)->process);
		while (nr)
			json_number(json, NULL, path[--nr]);
		json_close(json, ']');
	}
	json_close(json, ']');
}

static void put_profile(struct json *json, const struct report_data *export, bool bytes)
{
	uint64_t end = 0;

	json_open(json, NULL, '{');
	json_text(json, "type", "sampled");
	json_text(json, "name", bytes ? "outstanding bytes" : "outstanding blocks");
	json_text(json, "unit", bytes ? "bytes" : "none");
	json_number(json, "startValue", 0);
	put_samples(json, export);
	json_open(json, "weights", '[');
	for (size_t i = 0; i < export->view->nr; i++) {
		uint64_t weight = weight_of(view_stack(export->view, i), bytes);

		json_number(json, NULL, weight);
		end += weight;
	}
	json_close(json, ']');
	json_number(json, "endValue", end);
	json_close(json, '}');
}

int print_speedscope(FILE *out, const struct report_data *export)
{
	struct json json = {.out = out};
	int err;

	json_open(&json, NULL, '{');
	json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(&json, "exporter", "mleak " MLEAK_VERSION);
	json_text(&json, "name", export->path);
	json_number(&json, "activeProfileIndex", 0);
	err = put_frames(&json, export);
	if (err)
		return err;
	json_open(&json, "profiles", '[');
	put_profile(&json, export, true);
	put_profile(&json, export, false);
	json_close(&json, ']');
	json_close(&json, '}');
	return 0;
}
