/* stack_filter.h - which stacks a report is about: by their frames and by what is outstanding of them */
#ifndef REPORT_SIEVE_H
#define REPORT_SIEVE_H

#include "report/name/symbols.h"
#include "report/stats/stacks.h"
#include "report/filter/suppressions.h"

/* As it was asked for; all zero lets everything through. */
struct sieve_opts {
	const char *module;   /* pattern, as in a shell, of the path or the last part of the path */
	const char *function; /* extended regular expression, searched for in the names */
	uint64_t min_bytes;
	uint64_t min_blocks;
	bool any_amount; /* the two above are the caller's to look at: in a difference it is enough
			  * that one side has so much */
	struct suppressions *suppressions; /* borrowed; NULL: none */
};

/* Whether @function can stand in struct sieve_opts.  Returns 0, -EINVAL or -ENOMEM. */
int sieve_check(const char *function);

struct sieve; /* opaque */

/* *@out is NULL on failure.  @opts is copied, what it points to borrowed until sieve_free().
 * Returns 0, -ENOMEM, or -EINVAL: the regular expression is none. */
int sieve_new(struct sieve **out, const struct sieve_opts *opts);

/* Whether the frames of stacks, with names, must be known to decide. */
bool sieve_wants_names(const struct sieve *sieve);

/* Whether enough of @stack is outstanding. */
bool sieve_has_enough(const struct sieve *sieve, const struct stack *stack);

/* A stack with names; all of it is borrowed. */
struct sieve_stack {
	const struct stack *stack;
	const struct dwunw_frame *frames;
	size_t nr;
	const struct names *names;
	const struct labels *labels;
	const struct names_source *source;
};

/* Whether a frame of @stack is in the module and has the function asked for, and none is
 * suppressed. Matches of suppressions are counted in them. */
bool sieve_passes(const struct sieve *sieve, const struct sieve_stack *stack);

/* Whether the module with @path is one that @pattern, see struct sieve_opts, means. */
bool sieve_is_module(const char *pattern, const char *path);

/* Release @sieve; NULL is allowed. */
void sieve_free(struct sieve *sieve);

#endif
