/* closing.h - links on their way out: the kernel lets each wait until no CPU runs its program */
#ifndef RECORD_CLOSING_H
#define RECORD_CLOSING_H

#include <stdbool.h>
#include <stddef.h>

struct bpf_link;

/* All zero: nothing to close. */
struct closing {
	struct closing_one *v;
	size_t nr, room;
};

/* Take over the descriptor @fd of a link, or, where it is -1, @link.  Without memory it is closed
 * here and now. */
void closing_add(struct closing *c, int fd, struct bpf_link *link);

/* Close all, side by side, and leave @c empty.  Returns when it is done if @wait; else it goes on
 * in a thread of its own. */
void closing_run(struct closing *c, bool wait);

#endif
