/* keys.c - what each key does */
#include <ctype.h>
#include <errno.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "report/top/screen/screen_state.h"

#define KEY_ESCAPE 27

static int show_page(struct screen *screen, enum screen_page page)
{
	/* the same key leads back */
	screen->page = screen->page == page ? PAGE_STACKS : page;
	screen->at = screen->first = 0;
	return screen_refresh(screen);
}

static int sort_by(struct screen *screen, enum top_sort sort)
{
	screen->sort = sort;
	screen->at = screen->first = 0;
	return screen_refresh(screen);
}

/* Move the choice by @lines, and what is seen with it. */
static int move_by(struct screen *screen, long lines)
{
	size_t nr = screen_list_length(screen), rows = screen_list_rows();
	long at = (long)screen->at + lines;

	if (screen->page == PAGE_STACK || screen->page == PAGE_HELP) {
		at = (long)screen->first + lines;
		screen->first = at < 0 ? 0 : (size_t)at;
		screen->stale = true;
		return 0;
	}
	at = at >= (long)nr ? (long)nr - 1 : at;
	screen->at = at < 0 ? 0 : (size_t)at;
	if (screen->at < screen->first)
		screen->first = screen->at;
	if (screen->at >= screen->first + rows)
		screen->first = screen->at - rows + 1;
	/* those that come into view may have no names yet */
	return screen_refresh(screen);
}

static int open_stack(struct screen *screen)
{
	if (screen->page != PAGE_STACKS || screen->at >= screen->nr_shown)
		return screen->page == PAGE_STACK ? show_page(screen, PAGE_STACKS) : 0;
	screen->opened = screen->view->table.rows[screen->shown[screen->at]].stack;
	return show_page(screen, PAGE_STACK);
}

static int set_filter(struct screen *screen)
{
	if (screen->match)
		memset(screen->match, 0, screen->match_room);
	screen->at = screen->first = 0;
	return screen_refresh(screen);
}

/* A key while the filter is typed: what it shows follows each. */
static int type_filter(struct screen *screen, int key)
{
	size_t len = strlen(screen->filter);

	if (key == '\n' || key == KEY_ENTER || key == '\r') {
		screen->typing = false;
	} else if (key == KEY_ESCAPE) {
		screen->typing = false;
		screen->filter[0] = '\0';
	} else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && len) {
		screen->filter[len - 1] = '\0';
	} else if (key < 256 && isprint(key) && len + 1 < sizeof(screen->filter)) {
		screen->filter[len] = (char)key;
		screen->filter[len + 1] = '\0';
	}
	return set_filter(screen);
}

static int begin_filter(struct screen *screen)
{
	screen->page = PAGE_STACKS;
	screen->typing = true;
	screen->filter[0] = '\0';
	return set_filter(screen);
}

static int toggle_pause(struct screen *screen)
{
	screen->paused = !screen->paused;
	screen->stale = true;
	return 0;
}

/* Back to the list of all stacks. */
static int leave(struct screen *screen)
{
	screen->filter[0] = '\0';
	screen->page = PAGE_STACKS;
	return set_filter(screen);
}

static int write_trace(struct screen *screen)
{
	top_source_write(screen->source, screen->message, sizeof(screen->message));
	screen->stale = true;
	return 0;
}

/* Keys that move. */
static int move_key(struct screen *screen, int key)
{
	long page = (long)screen_list_rows();

	switch (key) {
	case KEY_UP:
	case 'k':
		return move_by(screen, -1);
	case KEY_DOWN:
	case 'j':
		return move_by(screen, 1);
	case KEY_PPAGE:
		return move_by(screen, -page);
	case KEY_NPAGE:
		return move_by(screen, page);
	case KEY_HOME:
		return move_by(screen, -(1l << 30));
	case KEY_END:
		return move_by(screen, 1l << 30);
	default:
		return 0;
	}
}

int screen_key(struct screen *screen, int key)
{
	if (key == KEY_RESIZE)
		return screen_refresh(screen);
	if (screen->typing)
		return type_filter(screen, key);
	screen->message[0] = '\0';
	switch (key) {
	case 'q':
		screen->quit = true;
		return 0;
	case 'b':
		return sort_by(screen, TOP_BYTES);
	case 'n':
		return sort_by(screen, TOP_BLOCKS);
	case 'r':
		return sort_by(screen, TOP_RATE);
	case 'a':
		return sort_by(screen, TOP_AGE);
	case ' ':
		return toggle_pause(screen);
	case '/':
		return begin_filter(screen);
	case 't':
		return show_page(screen, PAGE_THREADS);
	case 'p':
		return show_page(screen, PAGE_PROCESSES);
	case 'w':
		return write_trace(screen);
	case '?':
	case 'h':
		return show_page(screen, PAGE_HELP);
	case '\n':
	case '\r':
	case KEY_ENTER:
		return open_stack(screen);
	case KEY_ESCAPE:
		return leave(screen);
	default:
		return move_key(screen, key);
	}
}
