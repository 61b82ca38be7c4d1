/* page_rows.h - the stacks of a page: which it has, and what it tells of each */
#ifndef REPORT_PAGE_ROWS_H
#define REPORT_PAGE_ROWS_H

#include "report/context/growth_rows.h"
#include "report/context/stack_notes.h"
#include "report/context/thread_rows.h"
#include "report/page/page_tree.h"
#include "report/view/recursion.h"

/* A stack of a page. */
struct page_row {
	size_t i;    /* in the view */
	bool inside; /* the page has it; else it is in the sum of those left out */
	struct growth_row growth;
};

/* A thread that allocated what is outstanding. */
struct page_thread {
	uint32_t tgid, tid;
};

/* All stacks of a view, those outside of the page, too; to be read by all. */
struct page_rows {
	const struct report_data *export; /* borrowed */
	struct page_row *all;
	size_t nr;
	struct stack_notes notes;
	INTERN_OF(struct page_thread) threads;
	struct recursion recursion;
	struct recursion_path *folded; /* of one stack; NULL: repetitions are not folded */
	struct thread_rows accounts;   /* what threads allocated and freed; none: not known */
};

/* Take in the view of @export, which is borrowed until page_rows_release(), due in any case.
 * Returns 0 or -ENOMEM. */
int page_rows_init(struct page_rows *rows, const struct report_data *export);

/* Add stacks to @tree until it is full, those with most bytes first, and name its nodes.  Returns 0
 * or -ENOMEM. */
int page_rows_add(struct page_rows *rows, struct page_tree *tree);

/* Write the members "rows", "row_count", "threads", "accounts" and "rest" into the object that is
 * open. Returns 0 or -ENOMEM. */
int page_rows_put(struct page_rows *rows, struct page_tree *tree, struct json *json);

/* Release what @rows holds. */
void page_rows_release(struct page_rows *rows);

#endif
