/* unmatched_filters.h - filters that nothing in the trace matches: a typing error, most likely
 *
 * A check that `mleak report --fail-on-leak --function NAME` is made of would else pass forever.
 */
#ifndef REPORT_UNMATCHED_FILTERS_H
#define REPORT_UNMATCHED_FILTERS_H

#include "report/name/symbols.h"
#include "report/replay/replay.h"

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
