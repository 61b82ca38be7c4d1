/* suppressions.h - leaks that are known and not to be shown, in LeakSanitizer's syntax
 *
 * A line is `leak:PATTERN`.  A stack of which any frame's function, source file or module has the
 * pattern in its name is suppressed; * in it matches anything, ^ and $ match the name's ends.
 * Empty lines and those that begin with # say nothing.
 */
#ifndef REPORT_SUPPRESSIONS_H
#define REPORT_SUPPRESSIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/live/live.h"
#include "report/replay/replay.h"

struct suppressions; /* opaque */

/* None yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int suppressions_new(struct suppressions **out);

/* Add those in the file @path.  Returns 0, -ENOMEM, the -errno of reading it, or -EINVAL: line
 * *@line (from 1) is none. */
int suppressions_load(struct suppressions *suppressions, const char *path, size_t *line);

/* Add those in @text, which were found in the module at @source (copied); a line that is none is
 * ignored.  Returns 0 or -ENOMEM. */
int suppressions_add(struct suppressions *suppressions, const char *text, const char *source);

/* One of them, and what it matched; valid until the next is added. */
struct suppression {
	const char *pattern;
	const char *source; /* path of the module that it is from; NULL: of a file that was given */
	uint64_t stacks;
	struct live_amount matched;
};

/* Suppression @i, from 0 in the order of addition.  Returns false when there are no more. */
bool suppressions_get(const struct suppressions *suppressions, size_t i,
		      struct suppression *suppression);

/* Whether a frame is suppressed; any of its names may be NULL.  If so @amount is counted for the
 * first pattern that matches. */
bool suppressions_match(struct suppressions *suppressions, struct live_amount amount,
			const char *function, const char *file, const char *module);

/* All that was matched. */
struct live_amount suppressions_sum(const struct suppressions *suppressions);

/* Print what each pattern that matched did, or nothing when none did.  Errors of writing are left
 * in
 * @out for ferror(). */
void suppressions_print(const struct suppressions *suppressions, FILE *out);

/* Release @suppressions; NULL is allowed. */
void suppressions_free(struct suppressions *suppressions);

/*
 * Add those of all modules of @leaks to *@suppressions, which is made when it is NULL and there are
 * any.  Warn of a module whose suppressions could not be read.  Returns 0 or -ENOMEM.
 */
int embedded_suppressions_add(struct suppressions **suppressions, const struct replay *leaks);

#endif
