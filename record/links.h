/* links.h - the probes of one process: which files' functions they stand on, and the kernel's links
 * to them */
#ifndef RECORD_LINKS_H
#define RECORD_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/allocator.h"
#include "record/closing.h"

struct bpf_link;

#define LINKS_MAX_MULTI 6 /* multi links an object can have: one a step of probes_place() */

/* The probes on one file. */
struct link_set {
	struct alloc_object *object; /* sites and identity only: no path, no descriptor */
	int fds[LINKS_MAX_MULTI];    /* multi links */
	size_t nr_fds;
	struct bpf_link **perf; /* perf links */
	size_t nr_perf, room_perf;
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

/* Room for one more perf link in @set, to be filled and counted by the caller.  NULL: no memory. */
struct bpf_link **links_perf(struct link_set *set);

/* Are there probes on a file of @a, but not on the same functions? */
bool links_clash(const struct links *l, const struct allocators *a);

/* Hand the links on files that are not among those of @keep (NULL: all) over to @closing. */
void links_drop(struct links *l, const struct allocators *keep, struct closing *closing);

#endif
