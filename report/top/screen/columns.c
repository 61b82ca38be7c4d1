/* columns.c - see columns.h */
#include "report/top/screen/columns.h"

#include <errno.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/top/screen/put.h"

#define SPARKS	       8
#define TREND	       12 /* tables that are drawn */
#define GAP	       2  /* columns before the stack */
#define STACK_ENOUGH   26 /* columns of stacks for which nothing else is left out */
#define STACK_AT_LEAST 10

_Static_assert(TREND <= TOP_TREND, "a row has as many");

/* A column is at least so wide, with the space before it. */
static const struct {
	const char *title; /* NULL: that of sizes */
	int width;
	int sort; /* enum top_sort, or -1 */
} kinds[COLUMN_NR] = {
	[COLUMN_BYTES] = {NULL, 11, TOP_BYTES},	      [COLUMN_RATE] = {"net/s", 14, TOP_RATE},
	[COLUMN_BLOCKS] = {"blocks", 10, TOP_BLOCKS}, [COLUMN_FREED] = {"freed", 7, -1},
	[COLUMN_AGE] = {"age", 9, TOP_AGE},	      [COLUMN_TREND] = {"trend", GAP + TREND, -1},
};

/* What a narrow screen leaves out, first to last. */
static const enum column dispensable[] = {COLUMN_TREND, COLUMN_AGE, COLUMN_FREED, COLUMN_RATE,
					  COLUMN_BLOCKS};

/* How a stack's bytes changed, the last table at the right. */
static void trend_text(char text[PUT_MAX], const struct screen *screen, const struct top_row *row)
{
	static const char *const utf8[SPARKS] = {"\u2581", "\u2582", "\u2583", "\u2584",
						 "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const ascii[SPARKS] = {"_", ".", "-", "=", "+", "*", "%", "#"};
	const struct top_state *state = &screen->view->state;
	uint64_t most = 1;
	size_t len = 0;

	for (size_t back = 0; back < TREND; back++)
		if (row->trend[back] > most)
			most = row->trend[back];
	for (size_t back = TREND; back-- > 0;) {
		size_t level =
			(size_t)((double)row->trend[back] / (double)most * (SPARKS - 1) + 0.5);
		const char *spark = screen->utf8 ? utf8[level] : ascii[level];

		len += (size_t)snprintf(text + len, PUT_MAX - len, "%s",
					back >= state->nr_ticks ? " " : spark);
	}
}

/* What @row has in @column. */
static void cell_text(char text[PUT_MAX], const struct screen *screen, const struct top_row *row,
		      enum column column)
{
	char number[SIZE_TEXT_MAX];

	switch (column) {
	case COLUMN_BYTES:
		snprintf(text, PUT_MAX, "%s", size_cell(number, row->now.bytes));
		break;
	case COLUMN_RATE:
		if (screen->chosen.name && !screen_knows_rates(screen))
			snprintf(text, PUT_MAX, "-");
		else
			snprintf(text, PUT_MAX, "%s/s", size_rate_cell(number, row->rate));
		break;
	case COLUMN_BLOCKS:
		text_number(text, row->now.blocks);
		break;
	case COLUMN_FREED:
		snprintf(text, PUT_MAX, "%.1f%%", 100 * row->freed);
		break;
	case COLUMN_AGE:
		top_time(text, row->age_ns);
		break;
	default:
		trend_text(text, screen, row);
		break;
	}
}

static void place_stack(struct columns *columns)
{
	columns->stack = GAP;
	for (int i = 0; i < COLUMN_NR; i++)
		columns->stack += columns->width[i];
}

void columns_fit(struct columns *columns, const struct screen *screen, size_t first, size_t nr)
{
	int enough = COLS * 3 / 8 < STACK_ENOUGH ? COLS * 3 / 8 : STACK_ENOUGH;
	char text[PUT_MAX];

	for (int i = 0; i < COLUMN_NR; i++) {
		columns->width[i] = kinds[i].width;
		for (size_t k = 0; i != COLUMN_TREND && k < nr; k++) {
			int wide;

			cell_text(text, screen, &screen->view->table.rows[screen->shown[first + k]],
				  (enum column)i);
			wide = put_columns(text) + 1;
			columns->width[i] = wide > columns->width[i] ? wide : columns->width[i];
		}
	}
	/* of a thread's part of a stack it is not known what was freed, and how it was before */
	if (screen->chosen.name)
		columns->width[COLUMN_FREED] = columns->width[COLUMN_TREND] = 0;
	place_stack(columns);
	for (size_t i = 0; i < sizeof(dispensable) / sizeof(*dispensable); i++) {
		if (COLS - columns->stack >= enough)
			break;
		if (kinds[dispensable[i]].sort != (int)screen->sort)
			columns->width[dispensable[i]] = 0;
		place_stack(columns);
	}
}

void columns_head(const struct columns *columns, const struct screen *screen, int y)
{
	struct pen pen = {y, 0};

	for (int i = 0; i < COLUMN_NR; i++) {
		const char *title = kinds[i].title ? kinds[i].title : size_title();
		bool sorts = kinds[i].sort == (int)screen->sort;
		int len = (int)strlen(title) + sorts, left = columns->width[i] - len;

		if (!columns->width[i])
			continue;
		if (i == COLUMN_TREND)
			left = GAP;
		put(&pen, 0, "%*s", left, "");
		put(&pen, sorts ? A_REVERSE : 0, "%s%s", title, sorts ? "*" : "");
		put(&pen, 0, "%*s", columns->width[i] - left - len, "");
	}
	put(&pen, 0, "%*s%s", GAP, "", "stack");
}

int columns_row(const struct columns *columns, const struct screen *screen, int y,
		const struct top_row *row, size_t from)
{
	struct pen pen = {y, 0};
	char *safe = row->process ? text_escape(row->process) : NULL;
	char text[PUT_MAX], *line;
	const char *place;
	int room;

	for (int i = 0; i < COLUMN_NR; i++) {
		if (!columns->width[i])
			continue;
		cell_text(text, screen, row, (enum column)i);
		put(&pen, 0, "%*s%s", columns->width[i] - put_columns(text), "", text);
	}
	put(&pen, 0, "%*s", GAP, "");
	if (safe)
		put(&pen, 0, "%s: ", safe);
	room = COLS - pen.x > STACK_AT_LEAST ? COLS - pen.x : STACK_AT_LEAST;
	line = stack_names_line(screen->view->names, row->id, (size_t)room, from);
	if (line)
		put(&pen, 0, "%s", line);
	place = line ? stack_names_own_place(screen->view->names, row->id) : "";
	if (*place && put_columns(place) + 2 <= COLS - pen.x)
		put(&pen, A_DIM, "  %s", place);
	free(safe);
	free(line);
	return line ? 0 : -ENOMEM;
}
