/* words_ahead.h - the words of a trace, which a thread of its own reads and decodes */
#ifndef REPORT_WORDS_AHEAD_H
#define REPORT_WORDS_AHEAD_H

#include "format/reader.h"

struct words_ahead; /* opaque */

/* Begin to read all words of @trace, which nobody else may use until words_ahead_free().  *@out is
 * NULL on failure.  Returns 0, -ENOMEM or -EAGAIN. */
int words_ahead_new(struct words_ahead **out, struct mlk_reader *trace);

/* The next words, valid until the next call, for which *@words is to be as it was left; NULL the
 * first time.  Returns 1, 0 at the end, -ENOMEM or -errno of
 * read(2). */
int words_ahead_next(struct words_ahead *w, const struct mlk_pointers **words);

/* End the thread; NULL is allowed. */
void words_ahead_free(struct words_ahead *w);

#endif
