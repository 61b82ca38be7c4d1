/* links.h - the probes of one process: which files' functions they are on, and the kernel's links
 * to them */
#ifndef RECORD_LINKS_H
#define RECORD_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/allocator/allocator.h"
#include "record/privilege/helper.h"
#include "record/probe/link_closer.h"

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

/* Add the link @fd to @set; it is closed if there is no memory.  Returns 0 or -ENOMEM. */
int links_keep(struct link_set *set, int fd);

/* Are there probes on the file of @o, but not on the same functions? */
bool links_clash(const struct links *l, const struct alloc_object *o);

/* Hand the links on files that are not among those of @keep (NULL: all) over to @closing. */
void links_drop(struct links *l, const struct allocators *keep, struct link_closer *closing);

#endif
