/* print_json.c - the report as JSON; doc/report-json.md says what the members mean */
#include "report/machine/print_json.h"

#include <errno.h>

#define SCHEMA_VERSION 1

void json_place(struct json *json, const struct place *place)
{
	json_open(json, NULL, '{');
	json_text(json, "function", place->function);
	json_text(json, "module", place->module);
	json_text(json, "file", place->file);
	json_number(json, "line", place->line);
	json_bool(json, "inlined", place->inlined);
	json_close(json, '}');
}

void json_frames(struct json *json, const struct places *places)
{
	json_open(json, "frames", '[');
	for (size_t i = 0; i < places_nr(places); i++)
		json_place(json, places_get(places, (uint32_t)i));
	json_close(json, ']');
}

/* Of what is outstanding of a stack: the classes in which there is anything. */
static void put_ages(struct json *json, const struct live_amount ages[AGES_NR])
{
	json_open(json, "ages", '[');
	for (size_t i = 0; i < AGES_NR; i++) {
		if (!ages[i].blocks)
			continue;
		json_open(json, NULL, '{');
		json_number(json, "from_ns", ages_from_ns(i));
		json_number(json, "blocks", ages[i].blocks);
		json_number(json, "bytes", ages[i].bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* Which threads allocated the outstanding blocks of stack @number. */
static void put_takers(struct json *json, const struct alloc_threads *takers, uint32_t number)
{
	size_t nr;
	const struct taker *all = alloc_threads_of(takers, number, &nr);

	json_open(json, "threads", '[');
	for (size_t i = 0; i < nr; i++) {
		json_open(json, NULL, '{');
		json_number(json, "thread", all[i].tid);
		json_text(json, "thread_name", alloc_threads_name(takers, &all[i]));
		json_number(json, "blocks", all[i].amount.blocks);
		json_number(json, "bytes", all[i].amount.bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_stack(struct json *json, const struct report_data *export,
		const struct stack_notes *notes, size_t i)
{
	const struct stack *stack = view_stack(export->view, i);
	size_t nr;
	const uint32_t *path = places_path(export->places, i, &nr);

	json_number(json, "process", stack->process);
	json_amount(json, "outstanding", (struct live_amount){stack->blocks, stack->bytes});
	json_amount(json, "allocated", stack->allocated);
	json_amount(json, "freed", stack->freed);
	json_amount(json, "peak", stack->peak);
	json_number(json, "temporary", stack->temporary);
	json_number(json, "first_ns", report_data_since_start(export, stack->first_ns));
	json_number(json, "last_ns", report_data_since_start(export, stack->last_ns));
	put_ages(json, ages_of(notes->ages, view_number(export->view, i)));
	put_takers(json, notes->takers, view_number(export->view, i));
	json_bool(json, "complete", stack->status == DWUNW_STATUS_ENDED);
	json_open(json, "frames", '[');
	for (size_t at = 0; at < nr; at++)
		json_number(json, NULL, path[at]);
	json_close(json, ']');
}

int print_json(FILE *out, const struct report_data *export)
{
	struct json json = {.out = out};
	struct live_amount amount;
	size_t left_out = view_left_out(export->view, &amount);
	struct stack_notes notes;
	int err;

	if (stack_notes_init(&notes, export->leaks))
		return -ENOMEM;
	err = json_begin(&json, export, "mleak-report", SCHEMA_VERSION);
	json_frames(&json, export->places);
	json_text(&json, "cost", view_cost_name(view_options(export->view)->cost));
	json_open(&json, "stacks", '[');
	for (size_t i = 0; i < view_nr(export->view); i++) {
		json_open(&json, NULL, '{');
		json_stack(&json, export, &notes, i);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_left_out(&json, "stacks", left_out, amount);
	json_end(&json, export);
	stack_notes_release(&notes);
	return err;
}
