/* print_diff_html.c - a difference as a page, where red is more and blue is less */
#include <errno.h>
#include <stdlib.h>

#include "report/context/report_data.h"
#include "report/diff/print_diff.h"
#include "report/page/page_head.h"
#include "report/page/page_tree.h"
#include "report/page/page_write.h"

struct page {
	const struct diff *diff;
	size_t nr; /* stacks of it that are shown */
	struct labels *labels;
	uint32_t *numbers[DIFF_SIDES]; /* of the labels of all places */
	struct page_tree tree;
	size_t inside; /* the first so many stacks are in the page */
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
	json_text(json, "exe", to->meta->exe);
	return 0;
}

/* Add up stacks from @first to before @end. */
static void put_sums(struct json *json, const struct page *page, const char *key, size_t first,
		     size_t end)
{
	struct live_amount sum[DIFF_SIDES] = {0};

	for (size_t i = first; i < end; i++)
		for (int side = 0; side < DIFF_SIDES; side++)
			live_amount_add(&sum[side], page->diff->rows[i].amount[side]);
	json_open(json, key, '{');
	json_number(json, "stacks", end - first);
	page_head_amount(json, "before", sum[DIFF_BEFORE]);
	page_head_amount(json, "after", sum[DIFF_AFTER]);
	json_close(json, '}');
}

/* The sums of the stacks that are shown, and the losses of both traces. */
static void put_diff_totals(struct json *json, const struct page *page)
{
	uint64_t lost = 0, of = 0, complete = 0;

	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct report_data *export = page->diff->side[side];

		lost += replay_lost(export->leaks);
		complete += export->leaks->status_counts[DWUNW_STATUS_ENDED];
		of += replay_allocations(export->leaks);
	}
	put_sums(json, page, "totals", 0, page->nr);
	put_sums(json, page, "rest", page->inside, page->nr);
	json_number(json, "lost", lost);
	page_head_unwound(json, of, complete);
}

static int path_of_row(struct page *page, const struct diff_row *row, struct page_path *path)
{
	const struct places *places = page->diff->side[row->side]->places;
	size_t nr;
	const uint32_t *steps = places_path(places, row->i, &nr);

	return page_tree_path(&page->tree, path, places, steps, nr, page->numbers[row->side],
			      TREE_NONE);
}

static int add_stacks(struct page *page)
{
	struct page_path path;
	int err = 0;

	for (; page->inside < page->nr && !err && !page_tree_is_full(&page->tree); page->inside++) {
		err = path_of_row(page, &page->diff->rows[page->inside], &path);
		if (!err)
			err = page_tree_add(&page->tree, &path);
	}
	if (!err)
		err = page_tree_name(&page->tree);
	for (size_t i = 0; i < page->inside && !err; i++) {
		err = path_of_row(page, &page->diff->rows[i], &path);
		if (!err)
			err = page_tree_name_path(&page->tree, &path);
	}
	return err;
}

static int put_diff_stacks(struct json *json, struct page *page)
{
	struct page_path path;
	struct pack pack;
	int err = pack_open(&pack);

	for (size_t i = 0; i < page->inside && !err; i++) {
		const struct diff_row *row = &page->diff->rows[i];

		err = path_of_row(page, row, &path);
		if (err)
			break;
		page_tree_pack(&page->tree, &path, &pack);
		pack_number(&pack, row->amount[DIFF_AFTER].bytes);
		pack_number(&pack, row->amount[DIFF_AFTER].blocks);
		pack_number(&pack, row->amount[DIFF_BEFORE].bytes);
		pack_number(&pack, row->amount[DIFF_BEFORE].blocks);
	}
	json_open(json, "changes", '[');
	for (size_t i = 0; i < page->inside; i++)
		json_text(json, NULL, diff_verdict(page->diff, &page->diff->rows[i]));
	json_close(json, ']');
	json_number(json, "row_count", page->inside);
	if (!err)
		return pack_close(&pack, json, "rows");
	pack_close(&pack, NULL, NULL);
	return err;
}

static int put_diff_data(struct json *json, const void *arg)
{
	struct page page = *(const struct page *)arg;
	int err = diff_labels(page.diff, &page.labels, page.numbers, false);

	if (!err)
		err = page_tree_init(&page.tree, page.labels);
	if (!err)
		err = add_stacks(&page);
	if (!err)
		err = put_title(json, page.diff);
	if (!err) {
		put_diff_totals(json, &page);
		err = put_diff_stacks(json, &page);
	}
	if (!err)
		err = page_tree_put(&page.tree, json);
	page_tree_release(&page.tree);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(page.numbers[side]);
	labels_free(page.labels);
	return err;
}

int print_diff_html(FILE *out, const struct diff *diff, size_t top)
{
	struct page page = {.diff = diff, .nr = top && top < diff->nr ? top : diff->nr};

	return page_write(out, PAGE_DIFF, put_diff_data, &page);
}
