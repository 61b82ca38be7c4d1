/* stack_filter.h - which stacks a report is about: by their frames and by what is outstanding of
 * them */
#ifndef REPORT_STACK_FILTER_H
#define REPORT_STACK_FILTER_H

#include "report/filter/suppressions.h"
#include "report/name/symbols.h"
#include "report/replay/replay.h"
#include "report/stats/stacks.h"

/* As it was requested; all zero lets everything through. */
struct stack_filter_opts {
	const char *module;   /* pattern, as in a shell, of the path or the last part of the path */
	const char *function; /* extended regular expression, searched for in the names */
	bool by_id;	      /* only the stack with this id, see stack_id.h */
	uint64_t id;
	uint64_t min_bytes;
	uint64_t min_blocks;
	bool any_amount; /* the caller checks the two above: in a difference it is enough that one
			    side has so much */
	struct suppressions *suppressions; /* borrowed; NULL: none */
};

/* Whether @function can stand in struct stack_filter_opts.  Returns 0, -EINVAL or -ENOMEM. */
int stack_filter_check(const char *function);

struct stack_filter; /* opaque */

/* *@out is NULL on failure.  @opts is copied, what it points to borrowed until stack_filter_free().
 * Returns 0, -ENOMEM, or -EINVAL: the regular expression is none. */
int stack_filter_new(struct stack_filter **out, const struct stack_filter_opts *opts);

/* Whether the frames of stacks, with names, must be known to decide. */
bool stack_filter_wants_names(const struct stack_filter *sieve);

/* Whether enough of @stack is outstanding. */
bool stack_filter_has_enough(const struct stack_filter *sieve, const struct stack *stack);

/* A stack with names; all of it is borrowed. */
struct stack_filter_stack {
	const struct stack *stack;
	const struct dwunw_frame *frames;
	size_t nr;
	const struct symbols *names;
	const struct labels *labels;
	const struct symbols_source *source;
};

/* Whether a frame of @stack is in the module and has the function requested, and none is
 * suppressed. Matches of suppressions are counted in them. */
bool stack_filter_passes(const struct stack_filter *sieve, const struct stack_filter_stack *stack);

/* Whether the module with @path is one that @pattern, see struct stack_filter_opts, means. */
bool stack_filter_is_module(const char *pattern, const char *path);

/* Release @sieve; NULL is allowed. */
void stack_filter_free(struct stack_filter *sieve);

/* Whether no thread of the trace is the one that @leaks was chosen by; there is one. */
bool unmatched_filters_thread(const struct replay *leaks);

/* Whether no program or library of the trace is called so, see struct stack_filter_opts. */
bool unmatched_filters_module(const struct replay *leaks, const char *pattern);

/* Whether no stack of the trace, be it of blocks that were freed, has such a function: *@is. All of
 * them are named for that, so this takes long.  Returns 0, -ENOMEM, or -EINVAL: see
 * stack_filter_new(). */
int unmatched_filters_function(const struct replay *leaks, const struct symbols_source *source,
			       const char *function, bool *is);

#endif
