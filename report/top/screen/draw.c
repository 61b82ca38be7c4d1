/* draw.c - the head, the lists and the other pages */
#include <errno.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/top/screen/screen_state.h"

#define HEAD_ROWS 3 /* and one of column names */
#define FOOT_ROWS 1
#define SPARKS	  8

enum { PAIR_HEAVY = 1, PAIR_NAME, PAIR_REMARK };

size_t screen_list_rows(void)
{
	int rows = LINES - HEAD_ROWS - 1 - FOOT_ROWS;

	return rows > 0 ? (size_t)rows : 0;
}

static void draw_title(const struct screen *screen)
{
	const struct top_view *view = screen->view;
	const struct mlk_meta *meta = mlk_reader_meta(view->trace);
	uint64_t now_ns = view->table.now_ns;
	char size[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX], time[TOP_TIME_MAX];
	char *title = top_view_title(view), *safe = title ? text_escape(title) : NULL;

	attron(A_BOLD);
	mvprintw(0, 0, "mleak top");
	attroff(A_BOLD);
	printw("  %s  %s", safe ? safe : "",
	       top_time(time, now_ns > meta->start_ns ? now_ns - meta->start_ns : 0));
	if (view->resident_known)
		printw("  RSS %s", size_text(size, view->resident));
	if (view->lost)
		attron(COLOR_PAIR(PAIR_HEAVY));
	printw("  %s events lost", text_number(number, view->lost));
	attroff(COLOR_PAIR(PAIR_HEAVY));
	if (screen->paused || screen->ended || !screen->begun) {
		attron(COLOR_PAIR(PAIR_REMARK));
		printw("  [%s]", screen->ended ? "ended" : screen->begun ? "paused" : "attaching");
		attroff(COLOR_PAIR(PAIR_REMARK));
	}
	free(title);
	free(safe);
}

static void draw_sums(const struct screen *screen)
{
	const struct live_totals *totals = &screen->view->totals;
	const struct top_state *state = &screen->view->state;
	int64_t grown = (int64_t)(totals->outstanding.bytes - screen->outstanding_before);
	char a[SIZE_TEXT_MAX], b[TEXT_NUMBER_MAX], c[TEXT_NUMBER_MAX];

	mvprintw(
		1, 0, "outstanding %s in %s %s from %s %s", size_text(a, totals->outstanding.bytes),
		text_number(b, totals->outstanding.blocks), text_blocks(totals->outstanding.blocks),
		text_number(c, screen->view->table.nr_stacks),
		screen->view->table.nr_stacks == 1 ? "stack" : "stacks");
	printw(", %s/s",
	       size_rate_text(a,
			      state->since_ns ? (double)grown * 1e9 / (double)state->since_ns : 0));
	mvprintw(2, 0, "allocated %s %s, freed %s", text_number(b, totals->allocated.blocks),
		 text_blocks(totals->allocated.blocks), text_number(c, totals->freed.blocks));
	if (totals->unknown_frees)
		printw(", freed %s older ones", text_number(b, totals->unknown_frees));
}

#define TREND_COLUMNS 12

_Static_assert(TREND_COLUMNS <= TOP_TREND, "a row has as many");

/* How a stack's bytes changed, the last table at the right. */
static void draw_trend(const struct screen *screen, const struct top_row *row)
{
	static const char *const utf8[SPARKS] = {"\u2581", "\u2582", "\u2583", "\u2584",
						 "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const ascii[SPARKS] = {"_", ".", "-", "=", "+", "*", "%", "#"};
	const struct top_state *state = &screen->view->state;
	uint64_t most = 1;

	for (size_t back = 0; back < TREND_COLUMNS; back++)
		if (row->trend[back] > most)
			most = row->trend[back];
	for (size_t back = TREND_COLUMNS; back-- > 0;) {
		size_t level =
			(size_t)((double)row->trend[back] / (double)most * (SPARKS - 1) + 0.5);

		addstr(back >= state->nr_ticks ? " " : screen->utf8 ? utf8[level] : ascii[level]);
	}
}

#define STACK_COLUMN 64

static int draw_row(const struct screen *screen, int y, const struct top_row *row)
{
	const struct top_view *view = screen->view;
	size_t columns = COLS > STACK_COLUMN + 10 ? (size_t)(COLS - STACK_COLUMN) : 10;
	char size[SIZE_TEXT_MAX], rate[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX], age[TOP_TIME_MAX];
	char *safe = row->process ? text_escape(row->process) : NULL;
	char *line = stack_names_line(view->names, row->id, columns);

	size_cell(size, row->now.bytes);
	size_rate_cell(rate, row->rate);
	mvprintw(y, 0, "%11s %11s/s %9s %5.1f%% %8s  ", size, rate,
		 text_number(number, row->now.blocks), 100 * row->freed,
		 top_time(age, row->age_ns));
	draw_trend(screen, row);
	addstr("  ");
	if (safe)
		printw("%s: ", safe);
	if (line)
		addnstr(line, COLS - getcurx(stdscr) > 0 ? COLS - getcurx(stdscr) : 0);
	free(safe);
	free(line);
	return line ? 0 : -ENOMEM;
}

static int draw_stacks(const struct screen *screen)
{
	size_t rows = screen_list_rows();
	int err = 0;

	for (size_t i = 0; !err && i < rows && screen->first + i < screen->nr_shown; i++) {
		const struct top_row *row =
			&screen->view->table.rows[screen->shown[screen->first + i]];
		int y = HEAD_ROWS + 1 + (int)i;

		if (screen->first + i == screen->at)
			attron(A_REVERSE);
		err = draw_row(screen, y, row);
		attroff(A_REVERSE);
	}
	return err;
}

static int draw_groups(const struct screen *screen)
{
	const struct groups *groups = screen_groups(screen);
	size_t rows = screen_list_rows();

	for (size_t i = 0; i < rows && screen->first + i < groups->nr; i++) {
		const struct group *group = &groups->all[screen->first + i];
		char *safe = text_escape(group->name);
		char size[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX];

		if (screen->first + i == screen->at)
			attron(A_REVERSE);
		if (safe)
			mvprintw(HEAD_ROWS + 1 + (int)i, 0, "%11s %13s  %s",
				 size_cell(size, group->now.bytes),
				 text_number(number, group->now.blocks), safe);
		attroff(A_REVERSE);
		free(safe);
		if (!safe)
			return -ENOMEM;
	}
	return 0;
}

/* Each line of @text from the first that is to be seen on. */
static void draw_text(const struct screen *screen, const char *text)
{
	size_t rows = screen_list_rows(), line = 0;

	for (const char *at = text; *at; line++) {
		int len = (int)strcspn(at, "\n");

		if (line >= screen->first && line - screen->first < rows)
			mvaddnstr(HEAD_ROWS + 1 + (int)(line - screen->first), 0, at,
				  len < COLS ? len : COLS);
		at += len + (at[len] == '\n');
	}
}

/* What the stack that was opened has at the moment of the table; nothing if it has none there. */
static struct top_row opened_row(const struct screen *screen)
{
	const struct top_table *table = &screen->view->table;

	for (size_t i = 0; i < table->nr; i++)
		if (table->rows[i].stack == screen->opened.stack &&
		    table->rows[i].tgid == screen->opened.tgid)
			return table->rows[i];
	return (struct top_row){.id = screen->opened.id};
}

/* The stack that was opened: its sums, and all frames. */
static int draw_stack(const struct screen *screen)
{
	struct top_row row = opened_row(screen);
	char a[SIZE_TEXT_MAX], b[TEXT_NUMBER_MAX], c[TEXT_NUMBER_MAX], *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return -ENOMEM;
	fprintf(out, "%s in %s %s outstanding; ", size_text(a, row.now.bytes),
		text_number(b, row.now.blocks), text_blocks(row.now.blocks));
	if (row.given)
		fprintf(out, "%s allocated, %s freed", text_number(b, row.given),
			text_number(c, row.taken));
	else
		fputs("all were freed", out);
	fputs("\n\n", out);
	stack_names_print(screen->view->names, out, row.id, "  ");
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	draw_text(screen, text);
	free(text);
	return 0;
}

static const char help[] =
	"b n r a   sort by bytes, blocks, net rate, age\n"
	"/         show only stacks with this in a function's name\n"
	"Enter     all frames of the chosen stack, and back\n"
	"t p       what threads, or processes, hold, and back\n"
	"c g       what caches, or control groups, hold of the kernel's memory, and back\n"
	"Space     stand still; what is recorded goes on\n"
	"w         write the trace so far to a file, or this table if no trace is kept\n"
	"Esc       back to all stacks\n"
	"q         end\n\n"
	"up, down, PageUp, PageDown, Home, End move.\n\n"
	"net/s     bytes allocated less bytes freed a second\n"
	"freed     share of the stack's blocks that were freed\n"
	"age       of the outstanding blocks, on average\n"
	"trend     bytes outstanding at the last tables, the latest at the right\n";

static int draw_page(const struct screen *screen)
{
	switch (screen->page) {
	case PAGE_STACKS:
		return draw_stacks(screen);
	case PAGE_STACK:
		return draw_stack(screen);
	case PAGE_HELP:
		draw_text(screen, help);
		return 0;
	default:
		return draw_groups(screen);
	}
}

/* The names of the columns; that which sorts has a mark. */
static void draw_columns(const struct screen *screen)
{
	const char *marks[TOP_SORTS] = {" ", " ", " ", " "};

	marks[screen->sort] = "*";
	attron(A_UNDERLINE | A_BOLD);
	mvhline(HEAD_ROWS, 0, ' ', COLS);
	if (screen->page == PAGE_STACKS)
		mvprintw(HEAD_ROWS, 0, "%s%10s%s%12s%s%9s%7s%s%8s  %-*s  stack", marks[TOP_BYTES],
			 size_title(), marks[TOP_RATE], "net/s", marks[TOP_BLOCKS], "blocks",
			 "freed", marks[TOP_AGE], "age", TREND_COLUMNS, "trend");
	else if (screen_groups(screen))
		mvprintw(HEAD_ROWS, 0, "%11s %13s  %s", size_title(), "blocks",
			 groups_title(screen_groups(screen)));
	else
		mvaddstr(HEAD_ROWS, 0, screen->page == PAGE_HELP ? "keys" : "stack");
	attroff(A_UNDERLINE | A_BOLD);
}

static void draw_foot(const struct screen *screen)
{
	int y = LINES - FOOT_ROWS;

	if (screen->typing || screen->filter[0])
		mvprintw(y, 0, "filter: %s%s", screen->filter,
			 screen->typing ? "_" : "  (Esc: all)");
	else if (screen->message[0])
		mvaddnstr(y, 0, screen->message, COLS);
	else
		mvaddnstr(y, 0,
			  "q end  b n r a sort  / filter  Enter stack  t threads  p processes  "
			  "Space pause  w write  ? help",
			  COLS);
}

int screen_draw(struct screen *screen)
{
	int err;

	erase();
	draw_title(screen);
	draw_sums(screen);
	draw_columns(screen);
	err = draw_page(screen);
	draw_foot(screen);
	refresh();
	screen->stale = false;
	return err;
}
