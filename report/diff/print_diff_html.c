/* print_diff_html.c - a difference as the page of flame.html, where red is more and blue is less */
#include <errno.h>
#include <stdlib.h>

#include "report/context/report_data.h"
#include "report/diff/print_diff.h"
#include "report/machine/print_html.h"
#include "report/machine/print_json.h"
#include "report/view/places.h"
#include "report/view/tree.h"

struct page {
	const struct diff *diff;
	size_t nr; /* stacks of it that are shown */
};

/* Both have all stacks, and so the same nodes, but what was outstanding on one side each. */
struct graph {
	struct labels *labels;
	uint32_t *numbers[DIFF_SIDES]; /* of the labels of all places */
	struct tree *side[DIFF_SIDES];
	struct tree_names *names; /* of either */
};

static int put_title(struct json *json, const struct diff *diff)
{
	const struct report_data *from = diff->side[DIFF_BEFORE], *to = diff->side[DIFF_AFTER];
	char *title, *chosen;
	int len = to->choice->moments && from->path == to->path
			  ? asprintf(&title,
				     "mleak: outstanding memory of '%s' at %.9g s since %.9g s",
				     to->path, (double)to->choice->until_ns / 1e9,
				     (double)from->choice->until_ns / 1e9)
			  : asprintf(&title, "mleak: outstanding memory of '%s' since '%s'",
				     to->path, from->path);

	if (len < 0)
		return -ENOMEM;
	json_text(json, "title", title);
	free(title);
	if (shown_text(&chosen, diff->side[DIFF_AFTER]))
		return -ENOMEM;
	json_text(json, "shown", chosen);
	free(chosen);
	return 0;
}

/* The sums of the stacks that are shown, and the losses of both traces. */
static void put_diff_totals(struct json *json, const struct page *page)
{
	struct live_amount sum[DIFF_SIDES] = {0};
	uint64_t lost = 0, of = 0, complete = 0;

	for (size_t i = 0; i < page->nr; i++)
		for (int side = 0; side < DIFF_SIDES; side++)
			live_amount_add(&sum[side], page->diff->rows[i].amount[side]);
	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct report_data *export = page->diff->side[side];

		lost += replay_lost(export->leaks);
		complete += export->leaks->status_counts[DWUNW_STATUS_ENDED];
		of += replay_allocations(export->leaks);
	}
	json_open(json, "totals", '{');
	json_amount(json, "before", sum[DIFF_BEFORE]);
	json_amount(json, "after", sum[DIFF_AFTER]);
	json_close(json, '}');
	json_number(json, "lost", lost);
	json_open(json, "unwound", '{');
	json_number(json, "allocations", of);
	json_number(json, "complete", complete);
	json_close(json, '}');
}

static int put_diff_stacks(struct json *json, const struct page *page)
{
	size_t most = page->nr < HTML_MAX_STACKS ? page->nr : HTML_MAX_STACKS;
	int err = 0;

	json_open(json, "stacks", '[');
	for (size_t i = 0; i < most && !err; i++) {
		const struct diff_row *row = &page->diff->rows[i];
		const struct places *places = page->diff->side[row->side]->places;
		size_t nr;
		const uint32_t *path = places_path(places, row->i, &nr);

		json_open(json, NULL, '{');
		json_text(json, "change", diff_verdict(page->diff, row));
		json_amount(json, "before", row->amount[DIFF_BEFORE]);
		json_amount(json, "after", row->amount[DIFF_AFTER]);
		json_open(json, "frames", '[');
		for (size_t at = 0; at < nr && !err; at++)
			err = html_frame(json, &places->all[path[at]]);
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
	json_number(json, "more", page->nr - most);
	return err;
}

/* Recursion is as deep as a stack. */
static void put_diff_nodes(struct json *json, const struct graph *graph, uint32_t first,
			   uint64_t depth)
{
	const struct tree *after = graph->side[DIFF_AFTER], *before = graph->side[DIFF_BEFORE];

	for (uint32_t at = first; at != TREE_NONE; at = after->all[at].next) {
		json_number(json, NULL, depth);
		json_number(json, NULL, graph->names->numbers[at]);
		json_number(json, NULL, after->all[at].bytes);
		json_number(json, NULL, after->all[at].blocks);
		json_number(json, NULL, before->all[at].bytes);
		json_number(json, NULL, before->all[at].blocks);
		put_diff_nodes(json, graph, after->all[at].first, depth + 1);
	}
}

static int open_graph(struct graph *graph, const struct diff *diff)
{
	int err = diff_labels(diff, &graph->labels, graph->numbers, false);

	for (int side = 0; side < DIFF_SIDES && !err; side++)
		err = tree_new(&graph->side[side]);
	return err;
}

static int fill_graph(struct graph *graph, const struct page *page)
{
	uint32_t path[VIEW_MAX_PATH];
	int err = 0;

	for (size_t i = 0; i < page->nr && !err; i++) {
		const struct diff_row *row = &page->diff->rows[i];
		size_t nr = diff_path(page->diff, row, graph->numbers, path);

		for (int side = 0; side < DIFF_SIDES && !err; side++)
			err = tree_add(graph->side[side], path, nr, row->amount[side].bytes,
				       row->amount[side].blocks);
	}
	if (!err)
		err = tree_tell_apart(graph->side[DIFF_AFTER], graph->labels);
	if (!err)
		err = tree_names_new(&graph->names, graph->side[DIFF_AFTER], graph->labels);
	for (size_t i = 0; i < page->nr && !err; i++)
		err = tree_names_add(
			graph->names, path,
			diff_path(page->diff, &page->diff->rows[i], graph->numbers, path));
	return err;
}

static void close_graph(struct graph *graph)
{
	tree_names_free(graph->names);
	for (int side = 0; side < DIFF_SIDES; side++) {
		tree_free(graph->side[side]);
		free(graph->numbers[side]);
	}
	labels_free(graph->labels);
}

static int put_diff_graph(struct json *json, const struct page *page)
{
	struct graph graph = {0};
	int err = open_graph(&graph, page->diff);

	if (!err)
		err = fill_graph(&graph, page);
	if (!err) {
		tree_names_print(graph.names, json, "names");
		json_open(json, "nodes", '[');
		put_diff_nodes(json, &graph, graph.side[DIFF_AFTER]->all[TREE_ROOT].first, 1);
		json_close(json, ']');
	}
	close_graph(&graph);
	return err;
}

static int put_diff_data(struct json *json, const void *arg)
{
	const struct page *page = arg;
	int err = put_title(json, page->diff);

	if (err)
		return err;
	put_diff_totals(json, page);
	err = put_diff_stacks(json, page);
	return err ? err : put_diff_graph(json, page);
}

int print_diff_html(FILE *out, const struct diff *diff, size_t top)
{
	struct page page = {diff, top && top < diff->nr ? top : diff->nr};

	return html_page(out, put_diff_data, &page);
}
