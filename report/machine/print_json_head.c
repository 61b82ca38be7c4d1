/* print_json_head.c - what all documents of JSON begin and end with */
#include <errno.h>

#include "mleak.h"
#include "report/context/print_overruns.h"
#include "report/context/sampling_text.h"
#include "report/context/scope.h"
#include "report/machine/print_json.h"

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
	const struct mlk_condition *condition = replay_condition(export->leaks);

	json_open(json, "trace", '{');
	json_text(json, "path", export->path);
	json_text(json, "command", meta->command);
	json_text(json, "exe", meta->exe);
	json_text(json, "comm", replay_comm(export->leaks));
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

static void put_totals(struct json *json, const struct report_data *export)
{
	const struct live_totals *totals = replay_totals(export->leaks);

	json_open(json, "totals", '{');
	json_amount(json, "allocated", totals->allocated);
	json_amount(json, "freed", totals->freed);
	json_amount(json, "implied", totals->implied);
	json_amount(json, "gone", totals->gone);
	json_amount(json, "outstanding", totals->outstanding);
	json_amount(json, "peak", replay_peak(export->leaks));
	json_amount(json, "suspect", replay_suspect(export->leaks));
	json_number(json, "unknown_frees", totals->unknown_frees);
	json_number(json, "inherited_frees", totals->inherited_frees);
	json_close(json, '}');
}

/* All amounts are estimates then. */
static void put_sample(struct json *json, const struct report_data *export)
{
	const struct sampling_error *error = replay_error(export->leaks);
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
	const struct mlk_losses *losses = &replay_condition(export->leaks)->losses;
	const char *path;

	json_open(json, "lost", '{');
	json_number(json, "events", report_data_lost(export));
	json_open(json, "kinds", '{');
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (losses->count[kind])
			json_number(json, mlk_loss_text((enum mlk_loss)kind), losses->count[kind]);
	json_close(json, '}');
	json_open(json, "modules_without_unwind_information", '[');
	for (size_t i = 0; (path = replay_missing(export->leaks, i)); i++)
		json_text(json, NULL, path);
	json_close(json, ']');
	json_close(json, '}');
}

static void put_completeness(struct json *json, const struct replay *leaks)
{
	uint64_t of = 0;

	for (int status = 0; status < DWUNW_STATUS_NR; status++)
		of += replay_status_count(leaks, (enum dwunw_status)status);
	json_open(json, "unwound", '{');
	json_number(json, "allocations", of);
	json_number(json, "complete", replay_status_count(leaks, DWUNW_STATUS_ENDED));
	json_open(json, "incomplete", '{');
	for (int status = 0; status < DWUNW_STATUS_NR; status++) {
		uint64_t count = replay_status_count(leaks, (enum dwunw_status)status);

		if (count && status != DWUNW_STATUS_ENDED)
			json_number(json, dwunw_status_text((enum dwunw_status)status), count);
	}
	json_close(json, '}');
	json_close(json, '}');
}

/* All of the trace, whichever was requested: stacks name them by their place here. */
static void put_processes(struct json *json, const struct replay *leaks)
{
	const struct live *live = replay_live(leaks);

	json_open(json, "processes", '[');
	for (size_t i = 0; i < live_nr_processes(live); i++) {
		struct live_process process = live_process(live, i);

		json_open(json, NULL, '{');
		json_number(json, "pid", process.tgid);
		json_text(json, "comm",
			  live_nr_processes(live) == 1
				  ? replay_comm(leaks)
				  : processes_name(replay_processes(leaks), process.tgid));
		json_number(json, "parent", process.parent);
		json_bool(json, "exited", process.exited);
		json_amount(json, "allocated", process.totals.allocated);
		json_amount(json, "freed", process.totals.freed);
		json_amount(json, "implied", process.totals.implied);
		json_amount(json, "gone", process.totals.gone);
		json_amount(json, "outstanding", process.totals.outstanding);
		json_number(json, "unknown_frees", process.totals.unknown_frees);
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
