/* screen.c - see screen.h */
#include "report/top/screen/screen_state.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/base/array.h"
#include "report/context/sampling_text.h"
#include "report/terminal/color.h"

#define LOOK_NS	   50000000u   /* until it is looked again what was appended */
#define REFRESH_NS 1000000000u /* between two tables, if no interval is given */

/* What is known of a stack and the filter. */
enum { MATCH_UNKNOWN, MATCH_YES, MATCH_NO };

bool screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

static uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Does the filter's text occur in a function of @row's stack?  All stacks have names then. */
static int match_stack(struct screen *screen, const struct top_row *row, bool *match)
{
	uint8_t *known;
	char *line;
	int err = array_cover(&screen->match, &screen->match_room, (size_t)row->id + 1, 1);

	if (err)
		return err;
	known = &screen->match[row->id];
	if (*known == MATCH_UNKNOWN) {
		line = stack_names_line(screen->view->names, row->id, SIZE_MAX, 0);
		if (!line)
			return -ENOMEM;
		*known = strcasestr(line, screen->filter) ? MATCH_YES : MATCH_NO;
		free(line);
	}
	*match = *known == MATCH_YES;
	return 0;
}

int screen_choose(struct screen *screen)
{
	const struct top_table *table = &screen->view->table;
	const struct top_opts *opts = screen->view->opts;
	size_t most = opts->rows_given ? opts->rows : SIZE_MAX;
	int err = 0;

	screen->nr_shown = 0;
	for (uint32_t i = 0; !err && i < table->nr && screen->nr_shown < most; i++) {
		bool match = true;

		if (screen->filter[0])
			err = match_stack(screen, &table->rows[i], &match);
		if (!err && match)
			err = array_append(&screen->shown, &screen->nr_shown, &screen->shown_room,
					   &i, sizeof(i));
	}
	return err;
}

size_t screen_list_length(const struct screen *screen)
{
	const struct groups *groups = screen_groups(screen);
	const struct top_opts *opts = screen->view->opts;

	if (!groups)
		return screen->nr_shown;
	return opts->rows_given && opts->rows < groups->nr ? opts->rows : groups->nr;
}

const struct groups *screen_groups(const struct screen *screen)
{
	return screen->page >= PAGE_GROUPS ? &screen->groups[screen->page - PAGE_GROUPS] : NULL;
}

bool screen_knows_rates(const struct screen *screen)
{
	return screen->before.time_ns && screen->before.known_ns < screen->now.known_ns;
}

/* Have what threads hold at the last table, and at that before it if that was looked at. */
static int hold(struct screen *screen)
{
	const struct top_view *view = screen->view;

	if (screen->now.time_ns == view->all.now_ns)
		return 0;
	if (screen->now.time_ns == view->state.before_ns) {
		holdings_release(&screen->before);
		screen->before = screen->now;
		screen->now = (struct holdings){0};
	} else if (screen->before.time_ns != view->state.before_ns) {
		holdings_release(&screen->before);
	}
	return top_view_holdings(view, &screen->now);
}

static int fill_groups(struct screen *screen, enum group_kind kind)
{
	int err = hold(screen);

	return err ? err
		   : groups_fill(&screen->groups[kind], screen->view, kind, &screen->now,
				 &screen->before);
}

/* Have the stacks of the chosen group in the table, or all. */
static int part(struct screen *screen)
{
	struct top_view *view = screen->view;
	bool *in = NULL, *in_before = NULL, rates;
	int err;

	if (!screen->chosen.name)
		return top_view_part(view, NULL, NULL, NULL, NULL);
	err = screen->paused ? 0 : hold(screen);
	if (err)
		return err;
	rates = screen_knows_rates(screen);
	in = calloc(screen->now.threads.nr + 1, sizeof(*in));
	in_before = calloc(screen->before.threads.nr + 1, sizeof(*in_before));
	err = in && in_before ? 0 : -ENOMEM;
	if (!err)
		err = group_threads(&screen->chosen, screen->chosen_kind, view, &screen->now, in);
	if (!err)
		err = group_threads(&screen->chosen, screen->chosen_kind, view, &screen->before,
				    in_before);
	if (!err)
		err = top_view_part(view, &screen->now, in, rates ? &screen->before : NULL,
				    in_before);
	free(in);
	free(in_before);
	return err;
}

int screen_choose_group(struct screen *screen, const struct group *group)
{
	char *name = group ? strdup(group->name) : NULL;

	if (group && !name)
		return -ENOMEM;
	if (group)
		screen->chosen_kind = screen_groups(screen)->kind;
	free(screen->chosen.name);
	screen->chosen = group ? *group : (struct group){0};
	screen->chosen.name = name;
	return 0;
}

int screen_refresh(struct screen *screen)
{
	/* without a filter those in view are enough, with one all are looked at */
	size_t named = screen->filter[0] ? SIZE_MAX : screen->first + screen_list_rows(screen) + 1;
	int err = part(screen);

	if (!err)
		err = top_view_sort(screen->view, screen->sort, named);
	if (!err)
		err = screen_choose(screen);
	if (!err && !screen->paused && screen_groups(screen))
		err = fill_groups(screen, (enum group_kind)(screen->page - PAGE_GROUPS));
	if (!err && screen_groups(screen))
		groups_sort(&screen->groups[screen->page - PAGE_GROUPS], screen->sort);
	screen->stale = true;
	return err;
}

/* A table of this moment.  If the last one is of a short while ago, as before a pause, it gives
 * way: events come in parts, and a rate between such two would be that of a part, or of none. */
static int tick(struct screen *screen, uint64_t now_ns)
{
	struct top_state *state = &screen->view->state;
	int err;

	if (state->nr_ticks && now_ns < state->tick_ns + screen->interval_ns / 2)
		top_state_redo(state);
	else
		screen->outstanding_before = screen->outstanding_last;
	free(screen->notes);
	screen->notes = sampling_notes(mlk_reader_meta(screen->view->trace),
				       &screen->view->leaks->condition.losses);
	if (!screen->notes)
		return -ENOMEM;
	err = top_view_update(screen->view, now_ns, 0);
	screen->outstanding_last = screen->view->totals.outstanding.bytes;
	return err ? err : screen_refresh(screen);
}

int screen_pause(struct screen *screen)
{
	bool of_kernel = mlk_reader_meta(screen->view->trace)->of_kernel;
	int nr = of_kernel ? GROUPS_NR : GROUPS_CACHES, err = 0;

	if (!screen->paused && !screen->ended && screen->source->live)
		err = tick(screen, clock_now_ns());
	for (int kind = 0; kind < nr && !err && !screen->paused; kind++)
		err = fill_groups(screen, (enum group_kind)kind);
	screen->paused = !screen->paused;
	screen->next_ns = 0;
	screen->stale = true;
	return err;
}

static int take_keys(struct screen *screen)
{
	int key, err = 0;

	while (!err && (key = getch()) != ERR)
		err = screen_key(screen, key);
	return err;
}

/* Take in what is there, and draw.  Returns 0 or an error. */
static int step(struct screen *screen)
{
	bool live = screen->source->live;
	uint64_t now_ns = clock_now_ns();
	int state = FOLLOW_ENDED, err = 0;

	if (!screen->ended)
		state = top_view_step(screen->view, now_ns);
	if (state < 0)
		return state;
	/* What is finished is shown as it was at its end, in its own time. */
	if ((live && !screen->paused && now_ns >= screen->next_ns && !screen->ended) ||
	    (state == FOLLOW_ENDED && !screen->ended)) {
		screen->paused = screen->paused && state != FOLLOW_ENDED;
		err = tick(screen, live ? now_ns : follow_last_ns(screen->view->follow));
		screen->next_ns = now_ns + screen->interval_ns;
	}
	screen->ended |= state == FOLLOW_ENDED;
	screen->begun =
		screen->source->record.pipe < 0 || top_record_begun(&screen->source->record);
	if (!err)
		err = take_keys(screen);
	if (!err && screen->stale)
		err = screen_draw(screen);
	if (!err)
		top_source_wait(screen->source, state == FOLLOW_BUSY ? 0 : LOOK_NS);
	return err;
}

static void start_colors(void)
{
	start_color();
	use_default_colors();
	init_pair(1, COLOR_RED, -1);
	init_pair(2, COLOR_CYAN, -1);
	init_pair(3, COLOR_YELLOW, -1);
}

int screen_run(struct top_view *view, struct top_source *source, bool *quit)
{
	uint64_t interval_ns = view->opts->interval_ns ? view->opts->interval_ns : REFRESH_NS;
	struct screen screen = {
		.view = view,
		.source = source,
		.sort = view->opts->sort,
		.interval_ns = interval_ns,
		.utf8 = lines_utf8(LINES_AUTO),
		.page = view->opts->grouped ? (enum screen_page)(PAGE_GROUPS + (int)view->opts->by)
			: view->opts->resident ? PAGE_RESIDENT
					       : PAGE_STACKS,
		.stale = true};
	SCREEN *terminal;
	int err = 0;

	setlocale(LC_CTYPE, "");
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return -ENOTTY;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (color_wanted(COLOR_AUTO) && has_colors())
		start_colors();
	while (!err && !screen.quit && !source->asked && !source->hung_up)
		err = step(&screen);
	endwin();
	delscreen(terminal);
	*quit = screen.quit || source->hung_up;
	for (int kind = 0; kind < GROUPS_NR; kind++)
		groups_release(&screen.groups[kind]);
	holdings_release(&screen.now);
	holdings_release(&screen.before);
	free(screen.chosen.name);
	free(screen.shown);
	free(screen.match);
	free(screen.notes);
	return err;
}
