/* page_times.c - see page_times.h */
#include "report/page/page_times.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/text.h"
#include "report/context/memory_then.h"
#include "report/stats/stack_times.h"

#define FULL_ROOM   300000 /* characters for the stacks that are told in full */
#define COARSE_ROOM 500000 /* and for these with those told coarsely */
#define COARSE	    16	   /* slices between two entries of the latter */
#define MOST_MARKS  1000   /* more are counted */

/* By how much something changed, modulo 2^64. */
static void pack_change(struct pack *pack, struct live_amount from, struct live_amount to)
{
	pack_signed(pack, (int64_t)(to.bytes - from.bytes));
	pack_signed(pack, (int64_t)(to.blocks - from.blocks));
}

/* Append the entries of @track that are the last of @step slices.  Without @pack they are only
 * counted.  Returns how many there are. */
static size_t pack_entries(struct pack *pack, const struct stack_track *track, size_t step)
{
	struct live_amount before = {0};
	uint64_t slice = 0;
	size_t nr = 0;

	for (size_t at = 0; at < track->nr; at++) {
		const struct stack_time *time = &track->all[at];

		if (at + 1 < track->nr && track->all[at + 1].slice / step == time->slice / step)
			continue;
		nr++;
		if (!pack)
			continue;
		pack_number(pack, time->slice / step - slice);
		pack_change(pack, before, time->amount);
		slice = time->slice / step;
		before = time->amount;
	}
	return nr;
}

static void pack_track(struct pack *pack, const struct stack_track *track)
{
	size_t step = pack->nr < FULL_ROOM ? 1 : pack->nr < COARSE_ROOM ? COARSE : 0;

	pack_number(pack, step);
	if (!step)
		return;
	pack_number(pack, pack_entries(NULL, track, step));
	pack_entries(pack, track, step);
}

/* Add what each slice changed of @track to @sums. */
static void add_track(struct live_amount sums[STACK_TIMES_SLICES], const struct stack_track *track)
{
	struct live_amount before = {0};

	for (size_t at = 0; at < track->nr; at++) {
		struct live_amount now = track->all[at].amount, *sum = &sums[track->all[at].slice];

		sum->bytes += now.bytes - before.bytes;
		sum->blocks += now.blocks - before.blocks;
		before = now;
	}
}

static int put_total(const struct page_rows *rows, struct json *json)
{
	const struct stack_times *times = rows->export->times;
	struct live_amount sums[STACK_TIMES_SLICES] = {0};
	struct pack pack;
	int err = pack_open(&pack);

	if (err)
		return err;
	for (size_t i = 0; i < rows->nr; i++) {
		struct stack_track track =
			stack_times_of(times, rows->export->view->chosen[rows->all[i].i]);

		add_track(sums, &track);
	}
	for (size_t at = 0; at < times->slices; at++)
		pack_change(&pack, (struct live_amount){0}, sums[at]);
	return pack_close(&pack, json, "total");
}

/* Of the processes whose blocks are shown. */
static int put_rss(const struct page_rows *rows, struct json *json)
{
	const struct stack_times *times = rows->export->times;
	const struct replay *leaks = rows->export->leaks;
	uint64_t from_ns = times->start_ns;
	struct pack pack;
	bool known = false;
	int err = pack_open(&pack);

	if (err)
		return err;
	for (size_t at = 0; at < times->slices; at++) {
		uint64_t until_ns =
			times->start_ns + stack_times_until(times, at, leaks->chosen.end_ns);
		uint64_t bytes;
		bool is_told = memory_then(rows->export, MLK_MEMORY_RSS, from_ns, until_ns, &bytes);

		pack_number(&pack, !is_told ? 0 : bytes < UINT64_MAX ? bytes + 1 : bytes);
		known |= is_told;
		from_ns = until_ns;
	}
	return pack_close(&pack, known ? json : NULL, "rss");
}

/* What was marked, in microseconds since the recording began. */
static int put_marks(const struct page_rows *rows, struct json *json)
{
	const struct trace_marks *marks = &rows->export->leaks->marks;
	uint64_t start_ns = rows->export->meta->start_ns;

	if (!marks->nr)
		return 0;
	json_open(json, "marks", '[');
	for (size_t i = 0; i < marks->nr && i < MOST_MARKS; i++) {
		const struct trace_mark *mark = &marks->all[i];
		uint64_t ns = mark->time_ns > start_ns ? mark->time_ns - start_ns : 0;
		char *text = text_escape(mark->text);

		if (!text)
			return -ENOMEM;
		json_open(json, NULL, '{');
		json_number(json, "at", ns / 1000);
		json_text(json, "kind", trace_mark_kind(mark));
		json_text(json, "text", text);
		free(text);
		json_close(json, '}');
	}
	json_close(json, ']');
	if (marks->nr > MOST_MARKS || marks->left_out)
		json_number(json, "marks_left",
			    marks->left_out +
				    (marks->nr > MOST_MARKS ? marks->nr - MOST_MARKS : 0));
	return 0;
}

int page_times_put(const struct page_rows *rows, struct json *json)
{
	const struct stack_times *times = rows->export->times;
	uint64_t end_ns = rows->export->leaks->chosen.end_ns;
	struct pack pack;
	int err;

	err = put_marks(rows, json);
	if (!times || err)
		return err;
	json_open(json, "until", '[');
	for (size_t at = 0; at < times->slices; at++)
		json_number(json, NULL, stack_times_until(times, at, end_ns) / 1000);
	json_close(json, ']');
	err = put_total(rows, json);
	if (!err)
		err = put_rss(rows, json);
	if (!err)
		err = pack_open(&pack);
	if (err)
		return err;
	for (size_t i = 0; i < rows->nr; i++) {
		struct stack_track track;

		if (!rows->all[i].inside)
			continue;
		track = stack_times_of(times, rows->export->view->chosen[rows->all[i].i]);
		pack_track(&pack, &track);
	}
	return pack_close(&pack, json, "times");
}
