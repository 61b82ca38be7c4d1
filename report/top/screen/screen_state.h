/* screen_state.h - what the parts of the screen share */
#ifndef REPORT_SCREEN_STATE_H
#define REPORT_SCREEN_STATE_H

#include "report/top/groups.h"
#include "report/top/screen/screen.h"

#define FILTER_MAX  64
#define MESSAGE_MAX 160

/* What fills the screen below its head. */
enum screen_page {
	PAGE_STACKS,
	PAGE_STACK,
	PAGE_HELP,
	PAGE_RESIDENT,
	PAGE_GROUPS, /* and from here on one for each enum group_kind */
};

/* All of the screen. */
struct screen {
	struct top_view *view;
	struct top_source *source;
	enum screen_page page;
	enum top_sort sort;
	bool begun, paused, ended, typing, utf8, quit;
	bool stale;		 /* it is to be drawn */
	char filter[FILTER_MAX]; /* part of a function's name; "": all stacks */
	char message[MESSAGE_MAX];
	char *notes;	 /* sampling_notes() at the last table, or NULL */
	uint32_t *shown; /* rows of the table that the filter lets through */
	size_t nr_shown, shown_room;
	uint8_t *match; /* by id of a stack, what the filter says of it */
	size_t match_room;
	size_t at, first;      /* of the list: the chosen line, and the first that is seen */
	struct top_row opened; /* of PAGE_STACK; of it, only what distinguishes stacks is of use */
	struct groups groups[GROUPS_NR];
	struct holdings now, before; /* at the last table, and at that before; or of no moment */
	struct group chosen;	     /* whose stacks alone are shown; name NULL: all are */
	enum group_kind chosen_kind;
	uint64_t interval_ns;	     /* from table to table */
	uint64_t outstanding_before; /* bytes, at the table before the last, */
	uint64_t outstanding_last;   /* and at the last */
	uint64_t next_ns;
};

/* Choose the rows that the filter lets through.  Returns 0 or -ENOMEM. */
int screen_choose(struct screen *screen);

/* Show the stacks of @group of the page in view alone; NULL: all.  Returns 0 or -ENOMEM. */
int screen_choose_group(struct screen *screen, const struct group *group);

/* Are the rates known of what a group is made of? */
bool screen_knows_rates(const struct screen *screen);

/* Sum up what the page in view shows besides stacks, unless that stands still, and choose.  Returns
 * 0 or -ENOMEM. */
int screen_refresh(struct screen *screen);

/* Make a table of this moment, and stand still at it or go on.  Returns 0 or -ENOMEM. */
int screen_pause(struct screen *screen);

/* The groups of the page in view, or NULL. */
const struct groups *screen_groups(const struct screen *screen);

/* Lines of the list in view. */
size_t screen_list_length(const struct screen *screen);

/* Rows of the terminal that a list has. */
size_t screen_list_rows(const struct screen *screen);

/* Draw all of it.  Returns 0 or -ENOMEM. */
int screen_draw(struct screen *screen);

/* Obey the key @key of getch(3).  Returns 0 or -ENOMEM. */
int screen_key(struct screen *screen, int key);

#endif
