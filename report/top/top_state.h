/* top_state.h - what `mleak top` knows of each stack besides the replay, and the rows of a table */
#ifndef REPORT_TOP_STATE_H
#define REPORT_TOP_STATE_H

#include "report/follow/follow.h"
#include "report/top/top_options.h"

#define TOP_TREND 16 /* tables back for which a stack's bytes are kept */

/* Of a stack, by its number. */
struct top_stack {
	uint64_t born_us; /* sum over its outstanding blocks: allocated so long after the start */
	uint64_t bytes[TOP_TREND]; /* outstanding at each of the last tables, in a ring */
};

/* All zero but for the start is a state before any event. */
struct top_state {
	uint64_t start_ns;
	struct top_stack *all;
	size_t room;		  /* of them, zeroed: those that no event had */
	uint64_t nr_ticks;	  /* tables so far */
	uint64_t tick_ns;	  /* when the last one was */
	uint64_t before_ns;	  /* and that before; the start, if there was none */
	uint64_t known_ns;	  /* up to when the last one tells of all events, */
	uint64_t known_before_ns; /* and the one before; since when they are recorded, if there was
				     none */
	uint64_t since_ns;	  /* between these two: what rates are of */
	bool failed;		  /* memory was short */
};

/* A line of a table.  It stays what it is when the process is forgotten, and its stack's number is
 * that of another one. */
struct top_row {
	uint32_t stack;		   /* its number */
	uint32_t id;		   /* the unwinder's of the stack */
	uint32_t tgid;		   /* of its process */
	const char *process;	   /* as "sh (1234)", of the table; NULL: there is but one */
	struct live_amount now;	   /* outstanding */
	double rate;		   /* net bytes a second since the last table */
	double freed;		   /* share of its blocks that were freed, 0 to 1 */
	uint64_t given, taken;	   /* blocks allocated, and freed */
	uint64_t age_ns;	   /* mean, of what is outstanding */
	uint64_t trend[TOP_TREND]; /* bytes at this table and those before it, the latest first */
};

/* A table: its rows in their order. */
struct top_table {
	struct top_row *rows;
	size_t nr, room;
	size_t nr_stacks; /* with anything outstanding */
	uint64_t now_ns;  /* CLOCK_MONOTONIC, of which it tells */
	char **processes; /* their names, by number of live_process(); NULL where none is needed */
	size_t nr_processes;
};

/* For struct live_watch, with a struct top_state as its arg. */
void top_state_changed(void *state, const struct live_change *change);

/* Stack @number begins anew: follow_opts.forgot, with a struct top_state as its arg. */
void top_state_forget(void *state, uint32_t number);

/* A table of the moment @now_ns of what @follow has taken in is to be shown: note what each stack
 * has.  Returns 0 or -ENOMEM. */
int top_state_tick(struct top_state *state, const struct follow *follow, uint64_t now_ns);

/* The next table takes the place of the last one: rates are since the one before that. */
void top_state_redo(struct top_state *state);

/* Fill *@table, released with top_table_release(), with the stacks of @leaks that have anything
 * outstanding.  Returns 0 or -ENOMEM. */
int top_table_fill(struct top_table *table, const struct top_state *state,
		   const struct replay *leaks);

/* Sort the rows of @table, which stay what they are. */
void top_table_sort(struct top_table *table, enum top_sort sort);

/* Release what @table holds. */
void top_table_release(struct top_table *table);

/* Release what @state holds. */
void top_state_release(struct top_state *state);

#endif
