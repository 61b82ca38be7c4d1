/* draw.c - the head, the lists and the other pages */
#include <errno.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/top/screen/columns.h"
#include "report/top/screen/group_columns.h"
#include "report/top/screen/put.h"
#include "report/top/screen/screen_state.h"

#define HEAD_ROWS 3 /* one more for notes, and one of column names */
#define FOOT_ROWS 1

#define NAME "mleak top  "

enum { PAIR_HEAVY = 1, PAIR_NAME, PAIR_REMARK };

static int head_rows(const struct screen *screen)
{
	return HEAD_ROWS + (screen->notes && *screen->notes);
}

size_t screen_list_rows(const struct screen *screen)
{
	int rows = LINES - head_rows(screen) - 1 - FOOT_ROWS;

	return rows > 0 ? (size_t)rows : 0;
}

/* What, for how long, RSS, losses and whether it goes on; where the screen is narrow, without what
 * is of least use. */
static void draw_title(const struct screen *screen)
{
	const struct top_view *view = screen->view;
	const struct mlk_meta *meta = mlk_reader_meta(view->trace);
	uint64_t now_ns = view->table.now_ns;
	char size[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX], time[TOP_TIME_MAX];
	char *title = top_view_title(view), *safe = title ? text_escape(title) : NULL;
	char what[PUT_MAX], resident[PUT_MAX] = "", lost[PUT_MAX], state[PUT_MAX] = "";
	struct pen pen = {0, 0};
	int left;

	snprintf(what, sizeof(what), "%s  %s", safe ? safe : "",
		 top_time(time, now_ns > meta->start_ns ? now_ns - meta->start_ns : 0));
	if (view->resident_known)
		snprintf(resident, sizeof(resident), "  RSS %s", size_text(size, view->resident));
	snprintf(lost, sizeof(lost), "  %s event%s lost", text_number(number, view->lost),
		 view->lost == 1 ? "" : "s");
	if (screen->paused || screen->ended || !screen->begun)
		snprintf(state, sizeof(state), "  [%s]",
			 screen->ended	 ? "ended"
			 : screen->begun ? "paused"
					 : "attaching");
	left = COLS - put_columns(what) - put_columns(lost) - put_columns(state);
	if (left < 0 && !view->lost)
		lost[0] = '\0';
	if (left >= put_columns(NAME)) {
		put(&pen, A_BOLD, "%s", NAME);
		left -= put_columns(NAME);
	}
	put(&pen, 0, "%s", what);
	if (left >= put_columns(resident))
		put(&pen, 0, "%s", resident);
	put(&pen, view->lost ? COLOR_PAIR(PAIR_HEAVY) : 0, "%s", lost);
	put(&pen, COLOR_PAIR(PAIR_REMARK), "%s", state);
	free(title);
	free(safe);
}

/* The first of @lines, of @nr, that fits; else the last. */
static void put_shorter(int y, char (*lines)[PUT_MAX], size_t nr)
{
	struct pen pen = {y, 0};
	size_t i = 0;

	while (i + 1 < nr && put_columns(lines[i]) > COLS)
		i++;
	put(&pen, 0, "%s", lines[i]);
}

static void draw_sums(const struct screen *screen)
{
	const struct live_totals *totals = &screen->view->totals;
	const struct top_state *state = &screen->view->state;
	int64_t grown = (int64_t)(totals->outstanding.bytes - screen->outstanding_before);
	char a[SIZE_TEXT_MAX], b[TEXT_NUMBER_MAX], c[TEXT_NUMBER_MAX], rate[SIZE_TEXT_MAX];
	char lines[2][PUT_MAX], older[2][64] = {"", ""};

	size_rate_text(rate, state->since_ns ? (double)grown * 1e9 / (double)state->since_ns : 0);
	size_text(a, totals->outstanding.bytes);
	text_number(b, totals->outstanding.blocks);
	snprintf(lines[0], PUT_MAX, "outstanding %s in %s %s from %s %s, %s/s", a, b,
		 text_blocks(totals->outstanding.blocks),
		 text_number(c, screen->view->table.nr_stacks),
		 screen->view->table.nr_stacks == 1 ? "stack" : "stacks", rate);
	snprintf(lines[1], PUT_MAX, "%s, %s/s, %s %s", a, rate, b,
		 text_blocks(totals->outstanding.blocks));
	put_shorter(1, lines, 2);
	if (totals->unknown_frees) {
		text_number(b, totals->unknown_frees);
		snprintf(older[0], sizeof(older[0]), ", freed %s older %s", b,
			 totals->unknown_frees == 1 ? "one" : "ones");
		snprintf(older[1], sizeof(older[1]), ", %s older", b);
	}
	text_number(b, totals->allocated.blocks);
	text_number(c, totals->freed.blocks);
	snprintf(lines[0], PUT_MAX, "allocated %s %s, freed %s%s", b,
		 text_blocks(totals->allocated.blocks), c, older[0]);
	snprintf(lines[1], PUT_MAX, "+%s %s, -%s%s", b, text_blocks(totals->allocated.blocks), c,
		 older[1]);
	put_shorter(2, lines, 2);
	if (screen->notes && *screen->notes)
		put(&(struct pen){HEAD_ROWS, 0}, COLOR_PAIR(PAIR_REMARK), "%s", screen->notes);
}

static int draw_stacks(const struct screen *screen, const struct columns *columns, size_t nr)
{
	const uint32_t *shown = screen->shown + screen->first;
	size_t *from;
	int err = top_view_apart(screen->view, shown, nr, &from);

	for (size_t i = 0; !err && i < nr; i++) {
		if (screen->first + i == screen->at)
			attron(A_REVERSE);
		err = columns_row(columns, screen, head_rows(screen) + 1 + (int)i,
				  &screen->view->table.rows[shown[i]], from[i]);
		attroff(A_REVERSE);
	}
	free(from);
	return err;
}

/* The stacks in view, and above them what the columns are. */
static int draw_list(const struct screen *screen)
{
	size_t rows = screen_list_rows(screen), nr;
	struct columns columns;

	nr = screen->first < screen->nr_shown ? screen->nr_shown - screen->first : 0;
	nr = nr < rows ? nr : rows;
	columns_fit(&columns, screen, screen->first, nr);
	attron(A_UNDERLINE | A_BOLD);
	columns_head(&columns, screen, head_rows(screen));
	attroff(A_UNDERLINE | A_BOLD);
	return nr ? draw_stacks(screen, &columns, nr) : 0;
}

static int draw_groups(const struct screen *screen)
{
	size_t rows = screen_list_rows(screen), nr = screen_list_length(screen);
	int err = 0;

	for (size_t i = 0; !err && i < rows && screen->first + i < nr; i++)
		err = group_columns_row(screen, head_rows(screen) + 1 + (int)i, screen->first + i);
	return err;
}

#define HANGING 10 /* columns before what does not fit into its line */

/* How many bytes of @text, a line of @len that goes on, fit into @columns: where it can, up to a
 * space. */
static int line_part(const char *text, int len, int columns)
{
	char line[PUT_MAX];
	int bytes, used, space;

	snprintf(line, sizeof(line), "%.*s", len, text);
	bytes = put_fit(line, columns, &used);
	if (bytes >= len)
		return len;
	for (space = bytes; space > 0 && line[space] != ' '; space--)
		;
	return space > columns / 2 ? space : bytes ? bytes : 1;
}

/* Each line of @text from the first that is to be seen on; a long one takes several. */
static void draw_text(const struct screen *screen, const char *text)
{
	size_t rows = screen_list_rows(screen), line = 0;

	for (const char *at = text; *at; at += *at == '\n') {
		int indent = 0, len = (int)strcspn(at, "\n");

		do {
			int part = line_part(at, len, COLS - indent);
			struct pen pen = {head_rows(screen) + 1 + (int)(line - screen->first),
					  indent};

			if (line >= screen->first && line - screen->first < rows)
				put(&pen, 0, "%.*s", part, at);
			line++;
			at += part;
			len -= part;
			for (; len && *at == ' '; len--)
				at++;
			indent = COLS > 3 * HANGING ? HANGING : 0;
		} while (len);
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
	"b n r a   sort by bytes, blocks, net rate, age: stacks, threads, and so on\n"
	"/         show only stacks with this in a function's name\n"
	"Enter     all frames of the chosen stack, and back; the chosen thread's, process's, "
	"cache's or\n"
	"          control group's stacks\n"
	"t p       what threads, or processes, hold, and back\n"
	"c g       what caches, or control groups, hold of the kernel's memory, and back\n"
	"m         with --resident: whose the resident memory is, and back\n"
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
		return draw_list(screen);
	case PAGE_STACK:
		return draw_stack(screen);
	case PAGE_HELP:
		draw_text(screen, help);
		return 0;
	case PAGE_RESIDENT:
		draw_text(screen, screen->view->where.text     ? screen->view->where.text
				  : screen->view->where.failed ? "there is too little memory"
							       : "it was not read yet");
		return 0;
	default:
		return draw_groups(screen);
	}
}

/* The line above the page. */
static void draw_columns(const struct screen *screen)
{
	struct pen pen = {head_rows(screen), 0};

	attron(A_UNDERLINE | A_BOLD);
	mvhline(head_rows(screen), 0, ' ', COLS);
	if (screen_groups(screen))
		group_columns_head(screen, head_rows(screen));
	else if (screen->page != PAGE_STACKS)
		put(&pen, 0, "%s",
		    screen->page == PAGE_HELP	    ? "keys"
		    : screen->page == PAGE_RESIDENT ? "resident memory"
						    : "stack");
	attroff(A_UNDERLINE | A_BOLD);
}

/* Whose stacks alone are shown. */
static void put_chosen(const struct screen *screen, struct pen *pen)
{
	const struct groups of = {.kind = screen->chosen_kind};
	char *safe = text_escape(screen->chosen.name);

	put(pen, 0, "%s: %s  (Esc: all)", groups_title(&of), safe ? safe : "");
	free(safe);
}

static void draw_foot(const struct screen *screen)
{
	static char keys[][PUT_MAX] = {
		"q end  b n r a sort  / filter  Enter stack  t threads  p processes  "
		"Space pause  w write  ? help",
		"? help  q end  b n r a sort  / filter  Enter stack  Space pause",
		"? help  q end  b n r a sort  / filter",
	};
	struct pen pen = {LINES - FOOT_ROWS, 0};

	if (screen->typing || screen->filter[0])
		put(&pen, 0, "filter: %s%s", screen->filter, screen->typing ? "_" : "  (Esc: all)");
	else if (screen->message[0])
		put(&pen, 0, "%s", screen->message);
	else if (screen->chosen.name)
		put_chosen(screen, &pen);
	else
		put_shorter(pen.y, keys, sizeof(keys) / sizeof(*keys));
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
