/* keys.c - what each key does */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/top/screen/screen_state.h"

#define KEY_ESCAPE 27

static int show_page(struct screen *screen, enum screen_page page)
{
	/* the same key leads back */
	screen->page = screen->page == page ? PAGE_STACKS : page;
	screen->at = screen->first = 0;
	return screen_refresh(screen);
}

static int show_groups(struct screen *screen, enum group_kind kind)
{
	bool of_kernel = mlk_reader_meta(screen->view->trace)->of_kernel;

	if (kind < GROUPS_CACHES || of_kernel)
		return show_page(screen, (enum screen_page)(PAGE_GROUPS + (int)kind));
	snprintf(screen->message, sizeof(screen->message),
		 "only the kernel's memory is in caches and control groups: mleak top --kernel");
	screen->stale = true;
	return 0;
}

static int show_resident(struct screen *screen)
{
	if (screen->view->opts->resident)
		return show_page(screen, PAGE_RESIDENT);
	snprintf(screen->message, sizeof(screen->message),
		 "where the memory is is not recorded: mleak top --resident");
	screen->stale = true;
	return 0;
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
	size_t nr = screen_list_length(screen), rows = screen_list_rows(screen);
	long at = (long)screen->at + lines;

	if (screen->page == PAGE_STACK || screen->page == PAGE_HELP ||
	    screen->page == PAGE_RESIDENT) {
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

/* Open the chosen stack, or show those of the chosen group. */
static int open_chosen(struct screen *screen)
{
	const struct groups *groups = screen_groups(screen);
	int err;

	if (groups && screen->at < screen_list_length(screen)) {
		err = screen_choose_group(screen, &groups->all[screen->at]);
		return err ? err : show_page(screen, PAGE_STACKS);
	}
	if (screen->page != PAGE_STACKS || screen->at >= screen->nr_shown)
		return screen->page == PAGE_STACK ? show_page(screen, PAGE_STACKS) : 0;
	screen->opened = screen->view->table.rows[screen->shown[screen->at]];
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

/* Back to the list of all stacks. */
static int leave(struct screen *screen)
{
	int err = screen_choose_group(screen, NULL);

	if (err)
		return err;
	screen->filter[0] = '\0';
	screen->page = PAGE_STACKS;
	return set_filter(screen);
}

/* All stacks of the table with their frames, as `mleak top --flat` prints them. */
static int write_table(void *arg, int fd)
{
	struct screen *screen = arg;
	struct top_opts opts = *screen->view->opts;
	struct top_view view;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), err;
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (!out) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	opts.form = TOP_FLAT;
	opts.grouped = opts.resident = false;
	opts.rows = SIZE_MAX;
	err = top_view_sort(screen->view, screen->sort, SIZE_MAX);
	view = *screen->view;
	view.opts = &opts;
	if (!err)
		err = top_print(out, &view);
	if (fclose(out) && !err)
		err = errno ? -errno : -EIO;
	return err;
}

static int write_file(struct screen *screen)
{
	bool keeps = top_source_keeps(screen->source);
	char path[64] = "";
	int err = top_source_write(screen->source, keeps ? ".mlk" : ".txt",
				   keeps ? NULL : write_table, screen, path, sizeof(path));

	if (err)
		snprintf(screen->message, sizeof(screen->message), "cannot write '%s': %s", path,
			 mlk_strerror(err));
	else if (keeps)
		snprintf(screen->message, sizeof(screen->message),
			 "wrote '%s'; see mleak report %s", path, path);
	else
		snprintf(screen->message, sizeof(screen->message),
			 "wrote this table to '%s'; 'mleak top -o FILE' keeps the trace", path);
	screen->stale = true;
	return err == -ENOMEM ? err : screen_choose(screen);
}

/* Keys that move. */
static int move_key(struct screen *screen, int key)
{
	long page = (long)screen_list_rows(screen);

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
		return screen_pause(screen);
	case '/':
		return begin_filter(screen);
	case 't':
		return show_groups(screen, GROUPS_THREADS);
	case 'p':
		return show_groups(screen, GROUPS_PROCESSES);
	case 'c':
		return show_groups(screen, GROUPS_CACHES);
	case 'g':
		return show_groups(screen, GROUPS_CGROUPS);
	case 'm':
		return show_resident(screen);
	case 'w':
		return write_file(screen);
	case '?':
	case 'h':
		return show_page(screen, PAGE_HELP);
	case '\n':
	case '\r':
	case KEY_ENTER:
		return open_chosen(screen);
	case KEY_ESCAPE:
		return leave(screen);
	default:
		return move_key(screen, key);
	}
}
