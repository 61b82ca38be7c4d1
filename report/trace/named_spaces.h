/* named_spaces.h - layouts of address spaces with the names of code that processes generated, each
 * for a process and a time between two moments when its names changed
 */
#ifndef REPORT_NAMED_SPACES_H
#define REPORT_NAMED_SPACES_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"

/* One layout of an address space, whichever processes had it, and when. */
struct space {
	/* with trace_modules_absent() for modules that the unwinder does not have */
	struct dwunw_space *modules;
	struct dwunw_mapping
		*maps; /* of address_spaces.c: by numbers of images, until it is built */
	size_t nr_maps;
	size_t nr_copied; /* of the kernel's, when it was built */
};

/* A layout with the names that one process had then. */
struct named_space {
	uint32_t base; /* number of the layout without them */
	uint32_t tgid;
	size_t epoch;	/* as generated_names_epoch() */
	size_t nr_maps; /* it was built from */
	struct space *space;
};

/* Those that were needed; all zero is none. */
struct named_spaces {
	struct named_space *all;
	size_t nr, room;
	size_t last;	    /* the one found last */
	size_t nr_mappings; /* of all together */
};

/* The space of that base, process and epoch; NULL: it was not needed yet.  Valid until the next
 * named_spaces_add(). */
struct space *named_spaces_find(struct named_spaces *named, uint32_t base, uint32_t tgid,
				size_t epoch);

/*
 * Add @key, whose space is made of its nr_maps mappings at @maps.  If all have more than
 * @most mappings together then, the others are released.  Returns 0 or -ENOMEM.
 */
int named_spaces_add(struct named_spaces *named, const struct named_space *key,
		     const struct dwunw_mapping *maps, struct dwunw *dw, size_t most);

/* Release all. */
void named_spaces_release(struct named_spaces *named);

#endif
