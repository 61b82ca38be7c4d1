/* page_head.c - see page_head.h */
#include "report/page/page_head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/context/memory_answer.h"
#include "report/context/sampling_text.h"
#include "report/context/stack_verdicts.h"
#include "report/stats/growth_shape.h"

void page_head_amount(struct json *json, const char *key, struct live_amount amount)
{
	json_open(json, key, '{');
	json_number(json, "blocks", amount.blocks);
	json_number(json, "bytes", amount.bytes);
	json_close(json, '}');
}

void page_head_unwound(struct json *json, uint64_t allocations, uint64_t complete)
{
	json_open(json, "unwound", '{');
	json_number(json, "allocations", allocations);
	json_number(json, "complete", complete);
	json_close(json, '}');
}

static void put_some(struct json *json, const char *name, struct live_amount amount)
{
	if (amount.blocks)
		page_head_amount(json, name, amount);
}

static void put_count(struct json *json, const char *name, uint64_t blocks)
{
	if (!blocks)
		return;
	json_open(json, name, '{');
	json_number(json, "blocks", blocks);
	json_close(json, '}');
}

/* Those whose size is known have it beside them. */
static void put_older(struct json *json, const struct report_data *export)
{
	const struct live_totals *totals = &export->leaks->totals;
	uint64_t of_sample = replay_older_in_sample(export->leaks, export->meta);

	if (export->meta->whole_life)
		put_count(json, "unknown frees", totals->unknown_frees);
	else if (of_sample)
		put_count(json, "older blocks freed, by estimate", of_sample);
	else if (totals->older.blocks)
		page_head_amount(json, "older blocks freed", totals->older);
	if (!export->meta->whole_life)
		put_count(json, "older blocks freed, of unknown size",
			  totals->unknown_frees - totals->older.blocks);
}

/* What is outstanding, less the older blocks that were freed; it may be below zero. */
static void put_net(struct json *json, const struct report_data *export)
{
	const struct live_totals *totals = &export->leaks->totals;
	uint64_t of_sample = replay_older_in_sample(export->leaks, export->meta);
	struct live_amount net = live_net(totals);

	if (export->meta->whole_life || (!of_sample && !totals->unknown_frees))
		return;
	json_open(json, of_sample ? "net, by estimate" : "net", '{');
	json_signed(json, "blocks", (int64_t)(net.blocks - of_sample));
	if (!of_sample)
		json_signed(json, "bytes", (int64_t)net.bytes);
	json_close(json, '}');
}

/* The rows of the page's table: what the summary of text lists, by the names that are shown. */
static void put_totals(struct json *json, const struct report_data *export)
{
	const struct live_totals *totals = &export->leaks->totals;

	json_open(json, "totals", '{');
	page_head_amount(json, "allocated", totals->allocated);
	page_head_amount(json, "freed", totals->freed);
	put_older(json, export);
	put_count(json, "inherited blocks freed", totals->inherited_frees);
	put_some(json, "implied frees", totals->implied);
	put_some(json, "gone at exec", totals->gone);
	page_head_amount(json, "outstanding", totals->outstanding);
	put_some(json, "reserved, needs no memory", totals->reserved);
	put_some(json, "given back by madvise", totals->given_back);
	put_net(json, export);
	put_some(json, "suspect", export->leaks->suspects);
	page_head_amount(json, "shown", view_shown(export->view));
	put_some(json, "left out by top", export->view->left_out_amount);
	put_some(json, "at the peak", export->leaks->figures->peak);
	json_close(json, '}');
}

/* What the pointers in memory say, of all processes. */
static void put_reach(struct json *json, const struct report_data *export)
{
	const struct verdicts *v = export->verdicts;

	if (!v || !export->by_verdict)
		return;
	json_open(json, "reach", '{');
	for (int verdict = VERDICT_LOST; verdict < VERDICT_NR; verdict++) {
		struct live_amount sum = {0};

		for (size_t i = 0; i < export->by_verdict->nr; i++)
			live_amount_add(&sum, export->by_verdict->all[i][verdict]);
		page_head_amount(json, block_verdict_text((enum block_verdict)verdict), sum);
	}
	json_close(json, '}');
}

static int put_title(struct json *json, const struct mlk_meta *meta)
{
	char *title, pid[32] = "";

	if (!meta->of_kernel)
		snprintf(pid, sizeof(pid), " (pid %llu)", (unsigned long long)meta->tgid);
	if (asprintf(&title, "mleak: outstanding memory of %s%s%s%s",
		     meta->command[0] ? meta->command : meta->exe, pid,
		     meta->hostname[0] ? " on " : "", meta->hostname) < 0)
		return -ENOMEM;
	json_text(json, "title", title);
	free(title);
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int put_recording(struct json *json, const struct report_data *export)
{
	const struct mlk_meta *meta = export->meta;
	char seconds[32], sample[SAMPLE_TEXT_MAX];
	char *notes = sampling_notes(meta, &export->leaks->condition.losses);

	snprintf(seconds, sizeof(seconds), "%.3f", (double)report_data_duration(export) / 1e9);
	json_text(json, "seconds", seconds);
	json_number(json, "began_ms", meta->realtime_ns / 1000000);
	json_text(json, "comm", export->leaks->comm);
	json_text(json, "exe", meta->exe);
	json_text(json, "system", meta->kernel);
	json_text(json, "recorder", meta->recorder);
	json_bool(json, "attached", !meta->whole_life);
	json_bool(json, "of_kernel", meta->of_kernel);
	if (print_sampling_rate(sample, meta))
		json_text(json, "sample", sample);
	if (!notes)
		return -ENOMEM;
	json_text(json, "notes", notes);
	free(notes);
	return 0;
}

static void put_shapes(struct json *json)
{
	json_open(json, "shapes", '{');
	for (enum growth_shape i = 0; i < SHAPE_NR; i++)
		json_text(json, growth_shape_name(i), growth_shape_meaning(i));
	json_close(json, '}');
}

/* Line by line, if there are any. */
static int put_resident(struct json *json, const char *text)
{
	if (!text)
		return 0;
	json_open(json, "resident", '[');
	for (const char *end; *text; text = *end ? end + 1 : end) {
		char *line;

		end = strchrnul(text, '\n');
		line = strndup(text, (size_t)(end - text));
		if (!line)
			return -ENOMEM;
		json_text(json, NULL, line);
		free(line);
	}
	json_close(json, ']');
	return 0;
}

int page_head_put(struct json *json, const struct report_data *export)
{
	struct memory_answer memory;
	char *chosen;
	int err = put_title(json, export->meta);

	if (err)
		return err;
	if (shown_text(&chosen, export))
		return -ENOMEM;
	json_text(json, "shown", chosen);
	free(chosen);
	if (memory_answer(&memory, export))
		return -ENOMEM;
	if (memory.what) {
		json_text(json, "memory_answer", memory.what);
		json_text(json, "memory_reason", memory.why);
	}
	free(memory.what);
	json_bool(json, "growth_told", growth_shapes_tell(&export->leaks->chosen));
	put_totals(json, export);
	put_reach(json, export);
	if (put_resident(json, export->resident))
		return -ENOMEM;
	err = put_recording(json, export);
	put_shapes(json);
	json_number(json, "lost", replay_lost(export->leaks));
	page_head_unwound(json, replay_allocations(export->leaks),
			  export->leaks->status_counts[DWUNW_STATUS_ENDED]);
	return err;
}
