/* view.h - the stacks to show: chosen by weight, named, and turned the way they are read */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "report/filter/stack_filter.h"
#include "report/live/live.h"
#include "report/name/symbols.h"
#include "report/stats/process_groups.h"
#include "report/stats/stacks.h"

#define VIEW_MAX_PATH (2 * STACK_MAX_FRAMES + 2) /* labels of a path */

/* What a stack weighs; view_cost_name() has the names. */
enum view_cost {
	COST_OUTSTANDING, /* bytes, as the others */
	COST_ALLOCATED,
	COST_PEAK,	/* outstanding when most bytes of all stacks were */
	COST_TEMPORARY, /* blocks, as the next: those that their thread freed before it allocated or
			   freed another */
	COST_BLOCKS,	/* outstanding */
	COST_LOST,	/* bytes of outstanding blocks to which no pointer is left */
	COST_NR,
};

/* Its name in options and formats, as "outstanding". */
const char *view_cost_name(enum view_cost cost);

/* Which stacks are shown, and how they are named and read. */
struct view_opts {
	size_t top;	     /* show only so many stacks, those with the most bytes; 0: all */
	bool inverted;	     /* paths begin at the innermost function */
	bool addresses;	     /* see struct symbols_opts */
	bool offsets;	     /* likewise */
	bool inlined;	     /* functions that were inlined, too */
	bool full_recursion; /* each repetition of a call */
	bool each_process;   /* also of one program: else they have one root if @merged */
	bool merged;	     /* processes of one program, see process_groups.h */
	bool details;	     /* file and line of each frame, and why a stack is incomplete */
	bool color;	     /* for text: escape sequences of a terminal */
	bool utf8;	     /* for trees: lines of UTF-8, else of ASCII */
	size_t columns;	     /* of the terminal that text is for; 0: it is none */
	size_t rows;	     /* that text may have there, about; 0: any number */
	bool all;	     /* stacks of which nothing is outstanding, too */
	enum view_cost cost; /* what they are sorted by; and for view_cost_of() */
	struct stack_filter_opts sieve;
	/* Where there are several processes, paths begin with theirs.  NULL: they do not; borrowed
	 * until view_new() returns. */
	const struct thread_names *processes;
	const struct live *live; /* which these are; NULL: paths are of one process */
};

/* The stacks shown, the one with the most bytes first; those left out by view_opts.top follow.  All
 * of it is valid until view_free(). */
struct view {
	const struct stacks *stacks;
	uint32_t *chosen; /* numbers of stacks */
	size_t nr;
	struct view_opts opts;
	struct symbols_source source;
	struct labels *labels;
	struct symbols *names;
	uint32_t remarks[DWUNW_STATUS_NR]; /* labels of incomplete stacks, in place of missing
					      callers */
	uint32_t *roots;		   /* labels of processes, by number; NULL: there is one */
	bool *gone;			   /* of each: it is of a group that is gone */
	struct stack_filter *sieve;
	size_t left_out;		    /* stacks, by view_opts.top */
	size_t sieved_out;		    /* those that did not pass the sieve */
	struct live_amount left_out_amount; /* what is outstanding of the former */
};

/*
 * Choose among @stacks those of which blocks are outstanding, and name their frames with what
 * @source knows, whose unwinder is theirs.  @stacks, and what @source points to, are borrowed and
 * must outlive the view.
 * *@out is NULL on failure.  Returns 0, -ENOMEM, or -EINVAL: see stack_filter_new().
 */
int view_new(struct view **out, const struct stacks *stacks, const struct symbols_source *source,
	     const struct view_opts *opts);

/* Stack @i (below view_nr()); valid until the stacks are freed. */
const struct stack *view_stack(const struct view *view, size_t i);

/*
 * Write the labels of stack @i, from the root of a tree to the leaf, to @path.  An incomplete stack
 * has a remark where its missing callers would be.
 * Of inlined functions, the outer ones that do not fit are left out.
 * Returns how many there are, at least 1.
 */
size_t view_path(const struct view *view, size_t i, uint32_t path[VIEW_MAX_PATH]);

/* Write the first @most labels of stack @i, innermost first and without its process's, to @path; at
 * most STACK_MAX_FRAMES.  Returns how many there are. */
size_t view_innermost(const struct view *view, size_t i, uint32_t path[VIEW_MAX_PATH], size_t most);

/* What it weighs. */
uint64_t view_cost_of(const struct view *view, size_t i);

/* What the root of paths of process @number says, as "sh (1234)"; NULL: the trace has one process.
 * Valid until view_free(). */
const char *view_process(const struct view *view, uint32_t number);

/* Write the frames of stack @i, innermost first, to @frames.  Returns how many there are. */
size_t view_frames(const struct view *view, size_t i, struct dwunw_frame frames[STACK_MAX_FRAMES]);

/* The numbers of the first @nr stacks, which may be of those left out, in the order in which the
 * trace met them: stacks with the same callers are close to each other, so that what is looked up
 * of them is at hand.  To be freed; NULL: no memory. */
uint32_t *view_as_met(const struct view *view, size_t nr);

/* The id of stack @i, see stack_id.h. */
uint64_t view_stack_id(const struct view *view, size_t i);

/* What is outstanding of its stacks. */
struct live_amount view_shown(const struct view *view);

/* Release @view; NULL is allowed. */
void view_free(struct view *view);

#endif
