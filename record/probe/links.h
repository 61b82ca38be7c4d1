/* links.h - the probes of one process: which files' functions they are on, and the kernel's links
 * to them */
#ifndef RECORD_LINKS_H
#define RECORD_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "record/allocator/allocator.h"
#include "record/privilege/helper.h"

/* Links on their way out: the kernel lets each wait until no CPU runs its program.  That takes some
 * tens of milliseconds, for many multi links at once as long as for one: threads of their own do
 * it.  The kernel removes perf events one after the other anyway, under one lock, each in a
 * tenth of a second or so. */
struct link_closer; /* opaque */

/* *@out is NULL on failure.  Returns 0 or -errno. */
int link_closer_new(struct link_closer **out);

/* Take over @fd, the descriptor of a link; it is closed soon. */
void link_closer_add(struct link_closer *c, int fd);

/* Return when all that was added is closed. */
void link_closer_wait(struct link_closer *c);

/* Wait, and release @c; NULL is allowed. */
void link_closer_free(struct link_closer *c);

/* The probes on one file. */
struct link_set {
	struct alloc_object *object; /* sites and identity only: no path, no descriptor */
	int *fds;		     /* the links: one for many functions, or one each */
	size_t nr, room;
};

/* All zero: there are none. */
struct links {
	struct link_set *v;
	size_t nr, room;
};

/* The set on the same functions of the same file as @o, or NULL; valid until links_add(). */
struct link_set *links_find(const struct links *l, const struct alloc_object *o);

/* Add an empty set for @o.  NULL: no memory.  Valid until the next call. */
struct link_set *links_add(struct links *l, const struct alloc_object *o);

/* Put the probes @l in, by @helper, which may be NULL, where we are not allowed to, and add their
 * link to @set.  Returns 0 or -errno. */
int links_put(struct link_set *set, struct helper *helper, const struct helper_link *l);

/* As helper_link(), by ourselves. */
int links_make(const struct helper_link *l);

/* Are there probes on the file of @o, but not on the same functions? */
bool links_clash(const struct links *l, const struct alloc_object *o);

/* Hand the links on files that are not among those of @keep (NULL: all) over to @closing. */
void links_drop(struct links *l, const struct allocators *keep, struct link_closer *closing);

/*
 * Links on their way in, side by side.  For each place the kernel waits until no process of the
 * machine is in the middle of a fork, and keeps new forks waiting meanwhile.  On a loaded machine a
 * fork may stop for tenths of a second; but threads that wait at the same time wait for the same
 * forks.
 *
 * All zero: there is nothing to be placed.
 */
struct placing {
	struct placing_job *v;
	size_t nr, room;
};

/* Note that the one probe of @l is to be attached for @set, which stays where it is until
 * placing_run(); what @l points to is copied.  Returns 0 or -ENOMEM. */
int placing_add(struct placing *p, struct link_set *set, const struct helper_link *l);

/* Put all of them in, in any order, and add their links to their sets.  Nothing is left in @p.
 * Returns 0 or the first error, -errno; the others may be in. */
int placing_run(struct placing *p);

#endif
