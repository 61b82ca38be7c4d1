/* print_html.c - a report as a page */
#include "report/page/page_head.h"
#include "report/page/page_times.h"
#include "report/page/page_write.h"

static int put_data(struct json *json, const void *arg)
{
	const struct report_data *export = arg;
	struct page_tree tree;
	struct page_rows rows = {0};
	int err = page_tree_init(&tree, export->places->labels);

	if (!err)
		err = page_rows_init(&rows, export);
	if (!err)
		err = page_rows_add(&rows, &tree);
	if (!err)
		err = page_head_put(json, export);
	if (!err)
		err = page_rows_put(&rows, &tree, json);
	if (!err)
		err = page_times_put(&rows, json);
	if (!err)
		err = page_tree_put(&tree, json);
	page_rows_release(&rows);
	page_tree_release(&tree);
	return err;
}

int print_html(FILE *out, const struct report_data *export)
{
	return page_write(out, PAGE_REPORT, put_data, export);
}
