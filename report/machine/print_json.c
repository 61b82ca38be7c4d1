/* print_json.c - the report as JSON; doc/report-json.md says what the members mean */
#include "report/machine/print_json.h"

#include <errno.h>

#include "mleak.h"
#include "report/context/print_overruns.h"
#include "report/context/report_data.h"
#include "report/context/sampling_text.h"
#include "report/name/stack_id.h"

#define SCHEMA_VERSION 1

void json_amount(struct json *json, const char *key, struct live_amount amount)
{
	json_open(json, key, '{');
	json_number(json, "blocks", amount.blocks);
	json_number(json, "bytes", amount.bytes);
	json_close(json, '}');
}

static void put_trace(struct json *json, const struct report_data *export)
{
	const struct mlk_meta *meta = export->meta;
	const struct mlk_condition *condition = &export->leaks->condition;

	json_open(json, "trace", '{');
	json_text(json, "path", export->path);
	json_text(json, "command", meta->command);
	json_text(json, "exe", meta->exe);
	json_text(json, "comm", export->leaks->comm);
	json_number(json, "pid", meta->tgid);
	json_text(json, "hostname", meta->hostname);
	json_text(json, "kernel", meta->kernel);
	json_text(json, "machine", meta->machine);
	json_text(json, "recorder", meta->recorder);
	json_number(json, "start_unix_ns", meta->realtime_ns);
	json_number(json, "duration_ns", report_data_duration(export));
	json_bool(json, "whole_life", meta->whole_life != 0);
	json_bool(json, "ended", condition->ended);
	json_number(json, "chunks_lost", condition->chunks_lost);
	json_number(json, "bytes_skipped", condition->bytes_skipped);
	json_close(json, '}');
}

/* It may be below zero. */
static void put_net(struct json *json, const struct live_totals *totals)
{
	struct live_amount net = live_net(totals);

	json_open(json, "net", '{');
	json_signed(json, "blocks", (int64_t)net.blocks);
	json_signed(json, "bytes", (int64_t)net.bytes);
	json_close(json, '}');
}

static void put_totals(struct json *json, const struct report_data *export)
{
	const struct live_totals *totals = &export->leaks->totals;

	json_open(json, "totals", '{');
	json_amount(json, "allocated", totals->allocated);
	json_amount(json, "freed", totals->freed);
	json_amount(json, "implied", totals->implied);
	json_amount(json, "gone", totals->gone);
	json_amount(json, "outstanding", totals->outstanding);
	json_amount(json, "reserved", totals->reserved);
	json_amount(json, "given_back", totals->given_back);
	json_amount(json, "peak", export->leaks->figures->peak);
	json_amount(json, "suspect", export->leaks->suspects);
	json_number(json, "unknown_frees", totals->unknown_frees);
	json_number(json, "freed_again", totals->freed_again);
	if (replay_knows_older(export->leaks, export->meta)) {
		json_amount(json, "older", totals->older);
		put_net(json, totals);
	} else {
		json_null(json, "older");
		json_null(json, "net");
	}
	json_number(json, "inherited_frees", totals->inherited_frees);
	json_close(json, '}');
}

/* All amounts are estimates then. */
static void put_sample(struct json *json, const struct report_data *export)
{
	const struct sampling_error *error = &export->leaks->error;
	char how[SAMPLE_TEXT_MAX];

	if (!print_sampling_rate(how, export->meta))
		return;
	json_open(json, "sample", '{');
	json_text(json, "of", how);
	json_amount(json, "standard_error",
		    (struct live_amount){print_sampling_error(error->blocks),
					 print_sampling_error(error->bytes)});
	json_close(json, '}');
}

static void put_losses(struct json *json, const struct report_data *export)
{
	const struct mlk_losses *losses = &export->leaks->condition.losses;
	const char *path;

	json_open(json, "lost", '{');
	json_number(json, "events", replay_lost(export->leaks));
	json_open(json, "kinds", '{');
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (losses->count[kind])
			json_number(json, mlk_loss_text((enum mlk_loss)kind, 0),
				    losses->count[kind]);
	json_close(json, '}');
	json_open(json, "modules_without_unwind_information", '[');
	for (size_t i = 0; (path = replay_missing(export->leaks, i)); i++)
		json_text(json, NULL, path);
	json_close(json, ']');
	json_close(json, '}');
}

static void put_completeness(struct json *json, const struct replay *leaks)
{
	json_open(json, "unwound", '{');
	json_number(json, "allocations", replay_allocations(leaks));
	json_number(json, "complete", leaks->status_counts[DWUNW_STATUS_ENDED]);
	json_open(json, "incomplete", '{');
	for (int status = 0; status < DWUNW_STATUS_NR; status++) {
		uint64_t count = leaks->status_counts[(enum dwunw_status)status];

		if (count && status != DWUNW_STATUS_ENDED)
			json_number(json, dwunw_status_text((enum dwunw_status)status), count);
	}
	json_close(json, '}');
	json_close(json, '}');
}

/* All of the trace, whichever was requested: stacks name them by their place here. */
static void put_processes(struct json *json, const struct replay *leaks)
{
	const struct live *live = leaks->live;

	json_open(json, "processes", '[');
	for (size_t i = 0; i < live_nr_processes(live); i++) {
		struct live_process process = live_process(live, i);

		json_open(json, NULL, '{');
		json_number(json, "pid", process.tgid);
		json_text(json, "comm",
			  live_nr_processes(live) == 1
				  ? leaks->comm
				  : processes_name(leaks->processes, process.tgid));
		json_number(json, "parent", process.parent);
		json_bool(json, "exited", process.exited);
		json_amount(json, "allocated", process.totals.allocated);
		json_amount(json, "freed", process.totals.freed);
		json_amount(json, "implied", process.totals.implied);
		json_amount(json, "gone", process.totals.gone);
		json_amount(json, "outstanding", process.totals.outstanding);
		json_amount(json, "reserved", process.totals.reserved);
		json_amount(json, "given_back", process.totals.given_back);
		json_number(json, "unknown_frees", process.totals.unknown_frees);
		json_number(json, "freed_again", process.totals.freed_again);
		json_number(json, "inherited_frees", process.totals.inherited_frees);
		json_close(json, '}');
	}
	json_close(json, ']');
}

int json_begin(struct json *json, const struct report_data *export, const char *schema,
	       unsigned int version)
{
	int err;

	json_open(json, NULL, '{');
	json_text(json, "schema", schema);
	json_number(json, "version", version);
	json_text(json, "mleak", MLEAK_VERSION);
	put_trace(json, export);
	put_totals(json, export);
	put_processes(json, export->leaks);
	err = shown_json(json, export);
	put_sample(json, export);
	put_losses(json, export);
	put_completeness(json, export->leaks);
	json_memory(json, export, "memory", false);
	json_marks(json, export);
	json_reach(json, export);
	overruns_json(json, export);
	return err;
}

void json_left_out(struct json *json, const char *what, size_t nr, struct live_amount amount)
{
	json_open(json, "left_out", '{');
	json_number(json, what, nr);
	json_number(json, "blocks", amount.blocks);
	json_number(json, "bytes", amount.bytes);
	json_close(json, '}');
}

/* Those that left out anything. */
static void put_suppressed(struct json *json, const struct report_data *export)
{
	struct suppression suppression;

	json_open(json, "suppressed", '[');
	for (size_t i = 0;
	     export->suppressions && suppressions_get(export->suppressions, i, &suppression); i++) {
		if (!suppression.stacks)
			continue;
		json_open(json, NULL, '{');
		json_text(json, "pattern", suppression.pattern);
		json_text(json, "source", suppression.source ? suppression.source : "");
		json_number(json, "stacks", suppression.stacks);
		json_number(json, "blocks", suppression.matched.blocks);
		json_number(json, "bytes", suppression.matched.bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_end(struct json *json, const struct report_data *export)
{
	put_suppressed(json, export);
	json_amount(json, "filtered", report_data_filtered(export));
	json_close(json, '}');
}

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
	for (size_t i = 0; i < places->nr; i++)
		json_place(json, &places->all[i]);
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
static void put_takers(struct json *json, const struct stack_notes *notes, uint32_t number)
{
	size_t nr;
	const struct taker *all = stack_notes_takers(notes, number, &nr);

	json_open(json, "threads", '[');
	for (size_t i = 0; i < nr; i++) {
		json_open(json, NULL, '{');
		json_number(json, "thread", all[i].tid);
		json_text(json, "thread_name",
			  thread_names_get(notes->threads, all[i].tgid, all[i].tid));
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
	char id[STACK_ID_MAX];
	size_t nr;
	const uint32_t *path = places_path(export->places, i, &nr);

	json_text(json, "id", stack_id_text(id, view_stack_id(export->view, i)));
	json_number(json, "process", stack->process);
	json_amount(json, "outstanding", stack_outstanding(stack));
	json_amount(json, "allocated", stack->allocated);
	json_amount(json, "freed", stack->freed);
	json_amount(json, "peak", stack->peak);
	json_number(json, "temporary", stack->temporary);
	json_number(json, "first_ns", report_data_since_start(export, stack->first_ns));
	json_number(json, "last_ns", report_data_since_start(export, stack->last_ns));
	put_ages(json, notes->ages[export->view->chosen[i]]);
	put_takers(json, notes, export->view->chosen[i]);
	json_stack_verdicts(json, export, export->view->chosen[i]);
	json_bool(json, "complete", stack->status == DWUNW_STATUS_ENDED);
	json_open(json, "frames", '[');
	for (size_t at = 0; at < nr; at++)
		json_number(json, NULL, path[at]);
	json_close(json, ']');
}

int print_json(FILE *out, const struct report_data *export)
{
	struct json json = {.out = out};
	struct stack_notes notes;
	int err;

	if (stack_notes_init(&notes, export->leaks))
		return -ENOMEM;
	err = json_begin(&json, export, "mleak-report", SCHEMA_VERSION);
	json_frames(&json, export->places);
	json_text(&json, "cost", view_cost_name(export->view->opts.cost));
	json_open(&json, "stacks", '[');
	for (size_t i = 0; i < export->view->nr; i++) {
		json_open(&json, NULL, '{');
		json_stack(&json, export, &notes, i);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_left_out(&json, "stacks", export->view->left_out, export->view->left_out_amount);
	json_end(&json, export);
	stack_notes_release(&notes);
	return err;
}
