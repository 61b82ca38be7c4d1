/* words_ahead.h - the words of a trace, read, decoded and looked up beside the one who wants them
 */
#ifndef REPORT_WORDS_AHEAD_H
#define REPORT_WORDS_AHEAD_H

#include "format/reader.h"
#include "report/reach/graph/reach_pass.h"

struct words_ahead; /* opaque */

/* Words of one process. */
struct found_words {
	struct mlk_pointers pointers;
	uint32_t *to; /* of each word, as reach_world_find() finds it; nothing if nobody wants it */
};

/* Whose words are wanted.  It is asked by several threads at a time, while words are read. */
struct words_wanted {
	/* Returns where the words of process @tgid are looked up; NULL: they are not wanted. */
	const struct reach_world *(*world_of)(void *arg, uint32_t tgid);
	void *arg;
};

/* Begin to read all words of @trace, which nobody else may use until words_ahead_free().  *@out is
 * NULL on failure.  Returns 0, -ENOMEM or -EAGAIN. */
int words_ahead_new(struct words_ahead **out, struct mlk_reader *trace,
		    const struct words_wanted *wanted);

/* The next words, valid until the next call.  Returns 1, 0 at the end, -ENOMEM or -errno of
 * read(2). */
int words_ahead_next(struct words_ahead *w, const struct found_words **words);

/* End the thread; NULL is allowed. */
void words_ahead_free(struct words_ahead *w);

#endif
