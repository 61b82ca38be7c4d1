/* closing.h - links on their way out: the kernel lets each wait until no CPU runs its program
 *
 * That takes a tenth of a second, as long for many at once as for one: threads of their own do it.
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
