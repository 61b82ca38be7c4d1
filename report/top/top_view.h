/* top_view.h - what is shown of a trace that is followed: its replay, a table and names */
#ifndef REPORT_TOP_VIEW_H
#define REPORT_TOP_VIEW_H

#include <stdio.h>

#include "report/follow/follow.h"
#include "report/top/holdings.h"
#include "report/top/top_options.h"
#include "report/top/top_resident.h"
#include "report/top/top_state.h"
#include "report/view/stack_names.h"

/* All of it, between tables. */
struct top_view {
	const struct top_opts *opts; /* borrowed, as the reader is */
	struct mlk_reader *trace;
	struct follow *follow;
	follow_event_fn *event; /* with event_arg, for each event; or NULL */
	void *event_arg;
	uint64_t step_ns;     /* of top_view_step() */
	struct replay *leaks; /* of follow */
	struct top_state state;
	struct top_table all;	   /* of all stacks, */
	struct top_table table;	   /* and those of them that are wanted, in their order */
	struct live_totals totals; /* at the moment of the table */
	uint64_t begun;		   /* processes, by then */
	uint64_t lost;		   /* events */
	uint64_t resident;	   /* bytes that the processes had in memory, as the trace tells */
	bool resident_known;
	struct top_resident where; /* the memory is */
	bool ended;		   /* the trace was followed to its end */
	bool live; /* the trace is being written: the latest that it tells is of now */
	struct stack_names *names;
	uint64_t printed; /* tables */
	bool *named;	  /* by id of a stack: its names are known, for --trace */
	size_t named_room;
};

/* Begin with @trace; @event is called with @arg for each event.  Returns 0, -ENOMEM or -errno;
 * top_view_release() in any case. */
int top_view_start(struct top_view *view, const struct top_opts *opts, struct mlk_reader *trace,
		   follow_event_fn *event, void *arg);

/* Take in some of what is there at @now_ns.  Returns as follow_step(). */
int top_view_step(struct top_view *view, uint64_t now_ns);

/* Make the table of @now_ns, CLOCK_MONOTONIC, and name its first @nr stacks.  Returns 0 or
 * -ENOMEM. */
int top_view_update(struct top_view *view, uint64_t now_ns, size_t nr);

/* Sum up what threads hold at the moment of the table.  Returns 0 or -ENOMEM. */
int top_view_holdings(const struct top_view *view, struct holdings *holdings);

/* Have in the table, sorted or not, what is held by the threads of @now of which @in, one for each,
 * says so, and not more of each stack; without @in, all there is.  Rates are since @before, with
 * @in_before of its threads; NULL: they are not known.  Returns 0 or -ENOMEM. */
int top_view_part(struct top_view *view, const struct holdings *now, const bool *in,
		  const struct holdings *before, const bool *in_before);

/* Sort the table anew and name its first @nr stacks.  Returns 0 or -ENOMEM. */
int top_view_sort(struct top_view *view, enum top_sort sort, size_t nr);

/* What tells the @nr rows of the table, those with the numbers @rows or, if NULL, the first, from
 * each other, as stack_names_apart(): *@from has one for each, and the caller frees it.  Returns 0,
 * or -ENOMEM and *@from is NULL. */
int top_view_apart(const struct top_view *view, const uint32_t *rows, size_t nr, size_t **from);

/* Which process or processes the trace is about: a string that the caller frees, or NULL when there
 * is no memory. */
char *top_view_title(const struct top_view *view);

#define TOP_TIME_MAX 32 /* bytes for top_time() */

/* Write how long @ns nanoseconds are, as "2.3 s" or "1.5 h", into @buf.  Returns @buf. */
const char *top_time(char buf[TOP_TIME_MAX], uint64_t ns);

/* Print the table on @out as opts->form says.  Returns 0 or -ENOMEM. */
int top_print(FILE *out, const struct top_view *view);

/* Print @event, whose stack is @id if it is an ALLOC, on a line.  Returns 0 or -ENOMEM. */
int top_print_call(FILE *out, struct top_view *view, const struct mlk_event *event, uint32_t id);

/* Release what @view holds, but not the trace. */
void top_view_release(struct top_view *view);

#endif
