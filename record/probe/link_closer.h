/* link_closer.h - links on their way out: the kernel lets each wait until no CPU runs its program
 *
 * That takes some tens of milliseconds, for many multi links at once as long as for one: threads of
 * their own do it.  The kernel removes perf events one after the other anyway, under one lock, each
 * in a tenth of a second or so.
 */
#ifndef RECORD_LINK_CLOSER_H
#define RECORD_LINK_CLOSER_H

struct link_closer; /* opaque */

/* *@out is NULL on failure.  Returns 0 or -errno. */
int link_closer_new(struct link_closer **out);

/* Take over @fd, the descriptor of a link; it is closed soon. */
void link_closer_add(struct link_closer *c, int fd);

/* Return when all that was added is closed. */
void link_closer_wait(struct link_closer *c);

/* Wait, and release @c; NULL is allowed. */
void link_closer_free(struct link_closer *c);

#endif
