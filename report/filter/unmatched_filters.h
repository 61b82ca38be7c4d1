/* unmatched_filters.h - filters that nothing in the trace matches: a typing error, most likely
 *
 * A check that `mleak report --fail-on-leak --function NAME` is made of would else pass for ever.
 */
#ifndef REPORT_UNMATCHED_H
#define REPORT_UNMATCHED_H

#include "report/replay/replay.h"
#include "report/name/symbols.h"

/* Whether no thread of the trace is the one that @leaks was chosen by; there is one. */
bool unmatched_thread(const struct leaks *leaks);

/* Whether no program or library of the trace is called so, see struct sieve_opts. */
bool unmatched_module(const struct leaks *leaks, const char *pattern);

/* Whether no stack of the trace, be it of blocks that were freed, has such a function: *@is. All of
 * them are named for that, so this takes long.  Returns 0, -ENOMEM, or -EINVAL: see sieve_new(). */
int unmatched_function(const struct leaks *leaks, const struct names_source *source,
		       const char *function, bool *is);

#endif
