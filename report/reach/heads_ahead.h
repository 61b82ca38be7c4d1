/* heads_ahead.h - the events of a trace without their stacks, which a thread of its own reads and
 * decodes
 */
#ifndef REPORT_HEADS_AHEAD_H
#define REPORT_HEADS_AHEAD_H

#include <stdbool.h>

#include "format/reader.h"
#include "report/decode/batch.h"

struct heads_ahead; /* opaque */

/* Which events are wanted; it is asked by the thread. */
struct heads_wanted {
	bool (*wants)(void *arg, const struct mlk_event *event);
	void *arg;
};

/* Begin to read all events of @trace, which nobody else may use until heads_ahead_free().  *@out is
 * NULL on failure.  Returns 0, -ENOMEM or -EAGAIN. */
int heads_ahead_new(struct heads_ahead **out, struct mlk_reader *trace,
		    const struct heads_wanted *wanted);

/* The next @batch, which is valid until the next call, of events without stacks.  Returns 1, 0 at
 * the end, -ENOMEM or -errno of read(2). */
int heads_ahead_next(struct heads_ahead *h, const struct batch **batch);

/* End the thread; NULL is allowed. */
void heads_ahead_free(struct heads_ahead *h);

#endif
