/* link_close.h - links on their way out: the kernel lets each wait until no CPU runs its program
 *
 * That takes some tens of milliseconds, for many multi links at once as long as for one: threads of
 * their own do it.  Perf events the kernel takes out one after the other all the same, under one
 * lock, each in a tenth of a second or so.
 */
#ifndef RECORD_CLOSING_H
#define RECORD_CLOSING_H

struct closing; /* opaque */

/* *@out is NULL on failure.  Returns 0 or -errno. */
int closing_new(struct closing **out);

/* Take over @fd, the descriptor of a link; it is closed soon. */
void closing_add(struct closing *c, int fd);

/* Return when all that was added is closed. */
void closing_wait(struct closing *c);

/* Wait, and release @c; NULL is allowed. */
void closing_free(struct closing *c);

#endif
