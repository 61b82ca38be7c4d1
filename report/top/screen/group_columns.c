/* group_columns.c - see group_columns.h */
#include "report/top/screen/group_columns.h"

#include <errno.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/top/screen/put.h"

#define NARROW 60 /* columns of a screen on which names are to be seen */
#define WIDE   76 /* and of one that has room for all columns */

/* Is the column of @sort seen, and how wide is it? */
static int width_of(const struct screen *screen, enum top_sort sort)
{
	bool seen = sort == TOP_BYTES || sort == TOP_BLOCKS || sort == screen->sort || COLS >= WIDE;

	if (!seen)
		return 0;
	switch (sort) {
	case TOP_BYTES:
		return 11;
	case TOP_RATE:
		return 15;
	case TOP_AGE:
		return 10;
	default:
		return COLS < NARROW ? 9 : 14;
	}
}

static const enum top_sort order[] = {TOP_BYTES, TOP_RATE, TOP_AGE, TOP_BLOCKS};

#define NR_COLUMNS (sizeof(order) / sizeof(*order))

void group_columns_head(const struct screen *screen, int y)
{
	const char *const titles[] = {size_title(), "net/s", "age", "blocks"};
	struct pen pen = {y, 0};

	for (size_t i = 0; i < NR_COLUMNS; i++) {
		bool sorts = order[i] == screen->sort;
		int width = width_of(screen, order[i]);

		if (!width)
			continue;
		put(&pen, 0, "%*s", width - (int)strlen(titles[i]) - sorts, "");
		put(&pen, sorts ? A_REVERSE : 0, "%s%s", titles[i], sorts ? "*" : "");
	}
	put(&pen, 0, "  %s", groups_title(screen_groups(screen)));
}

static void cell_text(char text[PUT_MAX], const struct groups *groups, const struct group *group,
		      enum top_sort column)
{
	char number[SIZE_TEXT_MAX];

	switch (column) {
	case TOP_BYTES:
		snprintf(text, PUT_MAX, "%s", size_cell(number, group->now.bytes));
		break;
	case TOP_RATE:
		if (groups->rates)
			snprintf(text, PUT_MAX, "%s/s", size_rate_cell(number, group->rate));
		else
			snprintf(text, PUT_MAX, "-");
		break;
	case TOP_AGE:
		top_time(text, group->age_ns);
		break;
	default:
		text_number(text, group->now.blocks);
		break;
	}
}

int group_columns_row(const struct screen *screen, int y, size_t i)
{
	const struct groups *groups = screen_groups(screen);
	const struct group *group = &groups->all[i];
	char *safe = text_escape(group->name), text[PUT_MAX];
	int attributes = i == screen->at ? A_REVERSE : 0;
	struct pen pen = {y, 0};

	if (!safe)
		return -ENOMEM;
	for (size_t k = 0; k < NR_COLUMNS; k++) {
		int width = width_of(screen, order[k]);

		cell_text(text, groups, group, order[k]);
		if (width)
			put(&pen, attributes, "%*s", width, text);
	}
	put(&pen, attributes, "  %s", safe);
	free(safe);
	return 0;
}
